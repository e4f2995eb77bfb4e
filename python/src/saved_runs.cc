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
void write(const TrainedRun& run, const std::string& prompt, int64_t tokens, double temperature,
           int64_t top_k, double top_p, uint64_t seed, int threads, const nb::object& on_text) {
  const auto function = shared(on_text);
  const nb::gil_scoped_release without_gil;
  write_text({.source = run.text_source(),
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

// Calls a function without the GIL, which other threads that use the run may need before this one.
template <typename Function>
auto without_gil(const Function& function) {
  const nb::gil_scoped_release released;
  return function();
}

}  // namespace

void add_saved_runs(nb::module_& module) {
  nb::class_<TrainedRun>(module, "TrainedRun")
      .def(
          "__init__",
          [](TrainedRun* run, const std::string& path, bool best, bool trained,
             const std::vector<std::string>& overrides) {
            new (run) TrainedRun(
                RunSource{.path = path, .overrides = overrides, .best = best, .trained = trained});
          },
          nb::arg("path"), nb::arg("best") = false, nb::arg("trained") = false,
          nb::arg("overrides") = std::vector<std::string>())
      .def_prop_ro("folder", &TrainedRun::folder)
      .def("summary", &TrainedRun::summary)
      .def("config_text",
           [](TrainedRun& run) { return without_gil([&] { return run.config_text(); }); })
      .def("layout",
           [](TrainedRun& run) { return to_dict(without_gil([&] { return run.layout(); })); })
      .def("weights",
           [](TrainedRun& run) {
             return python::to_dict(without_gil([&] { return run.weights(); }));
           })
      .def("save", [](TrainedRun& run,
                      const std::filesystem::path& to) { without_gil([&] { run.save(to); }); })
      .def("measuring",
           [](TrainedRun& run, const std::vector<std::string>& metrics) {
             return without_gil([&] { return run.measuring(metrics); });
           })
      .def("predict",
           [](TrainedRun& run, const data::DatasetPtr& samples, const std::string& output) {
             return to_numpy(without_gil([&] { return run.predict(*samples, output); }));
           })
      .def("encoded",
           [](TrainedRun& run, const data::Table& table, bool with_targets) {
             return without_gil([&] { return run.encoded(table, with_targets); });
           })
      .def("evaluate",
           [](TrainedRun& run, const data::DatasetPtr& samples) {
             return to_dict(without_gil([&] { return run.evaluate(samples); }));
           })
      .def("evaluate_part",
           [](TrainedRun& run, const std::string& part) {
             return to_dict(without_gil([&] { return run.evaluate(part_by_name(part)); }));
           })
      .def("features",
           [](TrainedRun& run, const data::DatasetPtr& samples, const std::string& layer,
              const std::string& pooling) {
             return to_numpy(without_gil([&] { return run.features(*samples, layer, pooling); }));
           })
      .def("write_text", write)
      .def("text_vectors", [](const TrainedRun& run, const std::vector<std::string>& texts) {
        return to_numpy(without_gil([&] { return text_vectors(run.text_source(), texts); }));
      });
}

}  // namespace artel::python
