#include "artel/cli/subject.h"

#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/nn/zoo/registry.h"

namespace artel::cli {
namespace {

// "3x32x32".
Shape parse_shape(const std::string& text) {
  std::vector<int64_t> extents;
  for (const std::string& part : split(text, 'x')) {
    const bool digits =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
    require(digits && std::stoll(part) > 0, ErrorKind::invalid_argument,
            "--input: got '{}', expected a shape such as 3x32x32", text);
    extents.push_back(std::stoll(part));
  }
  return Shape(std::move(extents));
}

}  // namespace

Subject subject_of_config(const std::string& file, const std::vector<std::string>& overrides) {
  const RunConfig config = read_config(file, overrides);
  const RunData data = open_data(config);
  const data::SampleLayout& layout = data.layout();
  return {config,
          layout,
          sample_type(layout, data.augment),
          {layout.target_type(), layout.target},
          data.train->size()};
}

std::optional<Subject> subject_of_model(const std::string& name, const std::string& input,
                                        const std::vector<std::string>& overrides) {
  for (const nn::ModelDescription& description : nn::model_list()) {
    if (description.name != name) continue;
    RunConfig config = default_config(overrides);
    config.model.name = name;
    if (description.target == nn::ModelTarget::input) config.train.loss = "mse";
    const TensorType sample = {description.input_type,
                               input.empty() ? description.input : parse_shape(input)};
    return Subject{std::move(config),
                   {.input = sample.shape, .input_type = sample.dtype},
                   sample,
                   nn::target_of(description, sample)};
  }
  return std::nullopt;
}

Subject subject_of(const std::string& name, const std::string& input,
                   const std::vector<std::string>& overrides) {
  if (auto model = subject_of_model(name, input, overrides)) return std::move(*model);
  if (!std::filesystem::exists(name)) fail_unknown_subject(name);
  return subject_of_config(name, overrides);
}

void fail_unknown_subject(const std::string& name) {
  std::vector<std::string> names;
  for (const nn::ModelDescription& model : nn::model_list()) names.push_back(model.name);
  fail(ErrorKind::not_found, "[{}] neither a model nor a file{}", name, did_you_mean(name, names));
}

}  // namespace artel::cli
