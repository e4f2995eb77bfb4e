// Networks that are not trained yet.
#include "artel/nn/model.h"
#include "artel/nn/zoo/registry.h"
#include "artel/run/config/config.h"
#include "artel/run/config/setup.h"
#include "interop.h"

namespace artel::python {
namespace {

Model model_of(const std::vector<std::string>& overrides) {
  const ModelConfig config = default_config(overrides).model;
  return make_model(config, config.classes);
}

TensorType one_sample(std::vector<int64_t> shape, bool tokens) {
  shape.insert(shape.begin(), 1);
  return {tokens ? DType::i32 : DType::f32, Shape(std::move(shape))};
}

std::vector<std::pair<std::string, std::vector<int64_t>>> parameters(
    const std::vector<std::string>& overrides, const std::vector<int64_t>& sample, bool tokens) {
  const ModelGraph made = inference_graph(model_of(overrides), one_sample(sample, tokens));
  std::vector<std::pair<std::string, std::vector<int64_t>>> result;
  for (const ValueId id : made.graph.of_kind(ValueKind::parameter))
    result.emplace_back(made.graph.value(id).name, made.graph.type(id).shape.extents());
  return result;
}

// The shape of a sample of a network of the zoo as published, and whether it consists of tokens.
std::optional<std::pair<std::vector<int64_t>, bool>> published_input(const std::string& name) {
  for (const nn::ModelDescription& network : nn::model_list())
    if (network.name == name)
      return std::pair(network.input.extents(), network.input_type == DType::i32);
  return {};
}

// The keys of [model] in a file that differ from the defaults, as after --set.
std::vector<std::string> model_overrides(const std::filesystem::path& file) {
  std::vector<std::string> overrides;
  const std::vector<KeyDescription> defaults = config_keys(),
                                    given = config_keys(read_config(file));
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].name.starts_with("model.") && given[i].default_value != defaults[i].default_value)
      overrides.push_back(given[i].name + "=" + given[i].default_value);
  return overrides;
}

}  // namespace

void add_models(nb::module_& module) {
  module.def("parameters", parameters);
  module.def("published_input", published_input);
  module.def("model_overrides", model_overrides);
}

}  // namespace artel::python
