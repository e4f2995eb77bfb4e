#include "artel/run/samples/teachers.h"

#include <algorithm>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cluster/launcher.h"
#include "artel/predict/batches.h"
#include "artel/run/config/advice.h"
#include "artel/run/folder/fingerprint.h"
#include "artel/run/folder/run_folder.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

constexpr double kMostKeptBytes = 8e9;

struct Trained {
  Model model;
  NamedTensors weights;
  std::vector<std::string> augment;  // how its samples were prepared
};

Trained open_one(const std::string& path, const data::SampleLayout& layout) {
  require(fs::exists(path), ErrorKind::not_found,
          "[distil.teachers] {}: no such file or folder, expected a run, a checkpoint or a "
          "configuration with model.weights",
          path);
  if (const std::optional<RunFolder> folder = find_run(path)) {
    const RunConfig config = read_config(folder->config());
    return {make_model(config.model, folder->load_layout()), weights_for(config.model, path),
            config.data.augment};
  }
  const RunConfig config = read_config(path);
  require(!config.model.weights.empty(), ErrorKind::invalid_argument,
          "[{}] the configuration of a teacher needs model.weights, or give the folder of a run",
          path);
  return {make_model(config.model, layout), weights_for(config.model, config.model.weights),
          config.data.augment};
}

// The transforms that are also applied to test samples.
std::string fixed_part(const std::vector<std::string>& augment) {
  std::vector<std::string> texts;
  for (const data::Transform& each : data::Augmentation::parse(augment).for_testing().transforms)
    texts.push_back(each.text);
  return join(texts, ", ");
}

void check_teacher(const std::string& path, const Trained& teacher, const RunConfig& config,
                   const TensorType& sample, const Shape& expected) {
  Shape got;
  try {
    got = output_of(teacher.model, sample);
  } catch (const Error& error) {
    fail(ErrorKind::shape, "[distil.teachers] {} cannot read samples {}: {}", path,
         to_string(sample), error.what());
  }
  require(got == expected, ErrorKind::shape,
          "[distil.teachers] {} gives {} for a sample, but this network {}; both need the same "
          "classes",
          path, to_string(got), to_string(expected));
  const std::string theirs = fixed_part(teacher.augment), ours = fixed_part(config.data.augment);
  if (theirs != ours && speaks_for_the_run())
    log(LogLevel::warning,
        "{} was trained on samples prepared by [{}], but data.augment prepares them by [{}]", path,
        theirs, ours);
}

int64_t parameters_of(const Model& model, const TensorType& sample) {
  const ModelGraph built = inference_graph(model, batch_of(sample, 1));
  int64_t count = 0;
  for (const ValueId id : built.graph.of_kind(ValueKind::parameter))
    count += built.graph.type(id).shape.elements();
  return count;
}

void check_size(const Teacher& teacher, int64_t student) {
  if (student > teacher.parameter_count() && speaks_for_the_run())
    log(LogLevel::warning,
        "the student has {} parameters, more than its teachers ({}); distillation is meant for "
        "smaller networks",
        format_count(student), format_count(teacher.parameter_count()));
}

// The reason why outputs cannot be cached, or "".
std::string why_not_kept(const RunConfig& config, const RunData& data, const Shape& output) {
  if (!config.distil.cache) return "distil.cache is false";
  for (const data::Transform& transform : data.augment.transforms)
    if (transform.random) return fmt::format("'{}' changes the samples", transform.text);
  if (data.augment.mixup > 0) return "mixup changes the samples";
  if (data.layout().tokenizer || data.train->sparse()) return "the samples are texts or sparse";
  // Does not depend on free disk space, so that all workers decide alike.
  const double bytes =
      4.0 * static_cast<double>(output.elements()) * static_cast<double>(data.train->size());
  if (bytes > kMostKeptBytes) return fmt::format("they would take {}", format_bytes(bytes));
  return "";
}

}  // namespace

std::shared_ptr<Teacher> open_teacher(const RunConfig& config, const RunData& data,
                                      const Model& student, int threads) {
  if (config.distil.teachers.empty()) return nullptr;
  require(!config.train.cache, ErrorKind::invalid_argument,
          "train.cache: teachers need the samples themselves; leave one of them out");
  const TensorType sample = sample_type(data.layout(), data.augment);
  const Shape expected = output_of(student, sample);
  std::vector<Model> models;
  NamedTensors weights;
  for (const std::string& path : config.distil.teachers) {
    const Trained teacher = open_one(path, data.layout());
    check_teacher(path, teacher, config, sample, expected);
    for (const NamedTensor& weight : teacher.weights)
      weights.push_back({nn::teacher_prefix(models.size()) + "." + weight.name, weight.tensor});
    models.push_back(teacher.model);
  }
  const nn::DistillationOptions options = {.temperature = config.distil.temperature,
                                           .weight = config.distil.weight};
  auto teacher = std::make_shared<Teacher>(nn::softened_outputs(models, config.train.loss, options),
                                           sample, std::move(weights), options);
  check_size(*teacher, parameters_of(student, sample));
  const std::string reason = why_not_kept(config, data, teacher->output());
  if (!reason.empty()) {
    if (speaks_for_the_run())
      log(LogLevel::info, "the outputs of teachers are computed for each batch, because {}",
          reason);
    return teacher;
  }
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}", fingerprint_of(config, data), join(config.data.augment, "\n"),
                  config.train.seed, config.data.validation);
  teacher->keep(*data.train, data.augment, key, threads);
  return teacher;
}

}  // namespace artel
