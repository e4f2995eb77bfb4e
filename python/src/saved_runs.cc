// `artel.Run`: predictions, evaluations, features, and weights of a trained network.
#include "artel/run/samples/text_uses.h"
#include "interop.h"
#include "trained_run.h"

namespace artel::python {
namespace {

nb::dict to_dict(const Evaluation& evaluation) {
  nb::dict result;
  result["loss"] = evaluation.loss;
  result["samples"] = evaluation.samples;
  for (const MetricValue& metric : evaluation.metrics) {
    if (metric.single) {
      result[metric.name.c_str()] = metric.value;
      continue;
    }
    const Tensor sums = Tensor::from<double>(metric.shape, metric.sums);
    result[metric.name.c_str()] = to_numpy(sums);
  }
  return result;
}

nb::dict to_dict(const data::SampleLayout& layout) {
  nb::dict result;
  result["input"] = nb::tuple(nb::cast(layout.input.extents()));
  result["input_type"] = std::string(to_string(layout.input_type));
  result["classes"] = layout.classes;
  result["is_table"] = layout.table != nullptr;
  result["class_names"] = layout.class_names;
  return result;
}

Part part_by_name(const std::string& name) {
  for (const Part part : {Part::train, Part::validation, Part::test})
    if (to_string(part) == name) return part;
  fail(ErrorKind::invalid_argument, "part: got '{}', expected 'train', 'validation' or 'test'",
       name);
}

// Calls `on_text` with the prompt and with the text of each new token. Stops if it returns False.
void write(const std::string& source, const std::string& prompt, int64_t tokens, double temperature,
           int64_t top_k, double top_p, uint64_t seed, int threads, const nb::object& on_text) {
  const auto function = shared(on_text);
  const nb::gil_scoped_release without_gil;
  write_text({.source = source,
              .prompt = prompt,
              .options = {.tokens = tokens,
                          .sampling = {.temperature = temperature, .top_k = top_k, .top_p = top_p},
                          .seed = seed},
              .threads = threads},
             [&](std::string_view text) {
               return with_python("on_text", [&] {
                 return !(*function)(nb::bytes(text.data(), text.size())).is(nb::handle(Py_False));
               });
             });
}

nb::object vectors(const std::string& source, const std::vector<std::string>& texts) {
  Tensor rows;
  {
    const nb::gil_scoped_release without_gil;
    rows = text_vectors(source, texts);
  }
  return to_numpy(rows);
}

}  // namespace

void add_saved_runs(nb::module_& module) {
  module.def("write_text", write);
  module.def("text_vectors", vectors);
  nb::class_<TrainedRun>(module, "TrainedRun")
      .def(
          "__init__",
          [](TrainedRun* run, const std::string& path, bool best, bool trained,
             const std::vector<std::string>& overrides, const std::vector<std::string>& metrics) {
            new (run) TrainedRun(RunSource{.path = path,
                                           .overrides = overrides,
                                           .best = best,
                                           .more_metrics = metrics,
                                           .trained = trained});
          },
          nb::arg("path"), nb::arg("best") = false, nb::arg("trained") = false,
          nb::arg("overrides") = std::vector<std::string>(),
          nb::arg("metrics") = std::vector<std::string>())
      .def_prop_ro("folder", [](const TrainedRun& run) { return run.folder(); })
      .def("config_text", [](TrainedRun& run) { return to_toml(run.saved().config); })
      .def("layout", [](TrainedRun& run) { return to_dict(run.saved().layout); })
      .def("weights",
           [](TrainedRun& run) { return python::to_dict(run.saved().trainer->weights()); })
      .def("predict",
           [](TrainedRun& run, const data::DatasetPtr& samples, const std::string& output) {
             Tensor outputs;
             {
               const nb::gil_scoped_release without_gil;
               outputs = run.predict(*samples, output);
             }
             return to_numpy(outputs);
           })
      .def("encoded",
           [](TrainedRun& run, const data::Table& table, bool with_targets) {
             const nb::gil_scoped_release without_gil;
             return run.encoded(table, with_targets);
           })
      .def("evaluate",
           [](TrainedRun& run, const data::DatasetPtr& samples) {
             Evaluation evaluation;
             {
               const nb::gil_scoped_release without_gil;
               evaluation = run.evaluate(samples);
             }
             return to_dict(evaluation);
           })
      .def("evaluate_part",
           [](TrainedRun& run, const std::string& part) {
             Evaluation evaluation;
             {
               const nb::gil_scoped_release without_gil;
               evaluation = run.saved().evaluate(part_by_name(part));
             }
             return to_dict(evaluation);
           })
      .def("features", [](TrainedRun& run, const data::DatasetPtr& samples,
                          const std::string& layer, const std::string& pooling) {
        Tensor values;
        {
          const nb::gil_scoped_release without_gil;
          values = run.features(*samples, layer, pooling);
        }
        return to_numpy(values);
      });
}

}  // namespace artel::python
