#include "artel/transfer/convert.h"

#include <algorithm>
#include <array>
#include <map>
#include <regex>

#include "artel/base/error.h"

namespace artel::transfer {
namespace {

constexpr double kOurEpsilon = 1e-5;

// Transposes a tensor: axis i of the result is axis order[i] of `x`.
Tensor transposed(const Tensor& x, const std::vector<int>& order) {
  const std::vector<int64_t> strides = row_major_strides(x.shape());
  std::vector<int64_t> extents;
  for (const int axis : order) extents.push_back(x.shape()[axis]);
  Tensor result{Shape(extents)};
  const std::span<const float> from = x.values<float>();
  std::vector<int64_t> index(order.size());
  int64_t offset = 0;
  for (float& value : result.values<float>()) {
    value = from[offset];
    for (int axis = static_cast<int>(order.size()) - 1; axis >= 0; --axis) {
      offset += strides[order[axis]];
      if (++index[axis] < extents[axis]) break;
      offset -= extents[axis] * strides[order[axis]];
      index[axis] = 0;
    }
  }
  return result;
}

// Maps Keras's layer names to the zoo's, by network. Layers without a counterpart are skipped.
std::string resnet_module(const std::string& layer) {
  static const std::map<std::string, std::string> fixed = {
      {"conv1", "conv1"},  {"bn_conv1", "bn1"},   {"fc1000", "fc"}, {"conv1_conv", "conv1"},
      {"conv1_bn", "bn1"}, {"predictions", "fc"}, {"probs", "fc"}};
  if (const auto found = fixed.find(layer); found != fixed.end()) return found->second;
  static const std::regex older("(res|bn)([2-5])([a-f])_branch(1|2[abc])");
  static const std::regex newer("conv([2-5])_block([1-6])_([0-3])_(conv|bn)");
  std::smatch part;
  int stage = 0, block = 0, place = 0;  // place 0 is the shortcut
  bool norm = false;
  if (std::regex_match(layer, part, older)) {
    norm = part[1] == "bn";
    stage = part[2].str()[0] - '2';
    block = part[3].str()[0] - 'a';
    place = part[4] == "1" ? 0 : part[4].str()[1] - 'a' + 1;
  } else if (std::regex_match(layer, part, newer)) {
    stage = part[1].str()[0] - '2';
    block = part[2].str()[0] - '1';
    place = part[3].str()[0] - '0';
    norm = part[4] == "bn";
  } else {
    return "";
  }
  const std::string module = place == 0 ? fmt::format("downsample.{}", norm ? 1 : 0)
                                        : fmt::format("{}{}", norm ? "bn" : "conv", place);
  return fmt::format("layer{}.{}.{}", stage + 1, block, module);
}

std::string mobilenet_module(const std::string& layer) {
  static const std::map<std::string, std::string> fixed = {
      {"Conv1", "features.0.0"},   {"bn_Conv1", "features.0.1"},
      {"Conv_1", "features.18.0"}, {"Conv_1_bn", "features.18.1"},
      {"Logits", "classifier.1"},  {"predictions", "classifier.1"}};
  if (const auto found = fixed.find(layer); found != fixed.end()) return found->second;
  static const std::regex block(
      "(?:expanded_conv|block_([0-9]{1,2}))_(expand|depthwise|project)(_BN)?");
  std::smatch part;
  if (!std::regex_match(layer, part, block)) return "";
  const bool first = !part[1].matched;  // the first block does not expand
  const int number = first ? 1 : std::stoi(part[1]) + 1;
  const int place = (part[2] == "expand" ? 0 : part[2] == "depthwise" ? 1 : 2) - (first ? 1 : 0);
  if (place < 0) return "";
  const bool norm = part[3].matched;
  return part[2] == "project" ? fmt::format("features.{}.conv.{}", number, place + (norm ? 1 : 0))
                              : fmt::format("features.{}.conv.{}.{}", number, place, norm ? 1 : 0);
}

std::string vgg_module(const std::string& model, const std::string& layer) {
  static const std::map<std::string, std::string> fixed = {
      {"fc1", "classifier.0"}, {"fc2", "classifier.3"}, {"predictions", "classifier.6"}};
  if (const auto found = fixed.find(layer); found != fixed.end()) return found->second;
  static const std::regex convolution("block([1-5])_conv([1-4])");
  std::smatch part;
  if (!std::regex_match(layer, part, convolution)) return "";
  const int block = part[1].str()[0] - '1', place = part[2].str()[0] - '1';
  const bool deep = model == "vgg19";
  int number = 0;  // layer index: two per preceding convolution, one per pooling
  for (int i = 0; i < block; ++i) number += 2 * (i < 2 ? 2 : deep ? 4 : 3) + 1;
  return fmt::format("features.{}", number + 2 * place);
}

std::string module_of(const std::string& model, const std::string& layer) {
  if (model.starts_with("resnet50")) return resnet_module(layer);
  if (model.starts_with("mobilenet_v2")) return mobilenet_module(layer);
  if (model == "vgg16" || model == "vgg19") return vgg_module(model, layer);
  fail(ErrorKind::unsupported,
       "[model '{}'] Keras's names are known for ResNet-50, MobileNetV2, "
       "VGG-16 and VGG-19",
       model);
}

// Splits "conv1/kernel", "conv1/conv1/kernel:0", or "block1_conv1/block1_conv1_W_1:0" into layer
// and parameter.
struct KerasName {
  std::string layer, part;
};

KerasName split_keras_name(const std::string& name) {
  static const std::map<std::string, std::string> older = {{"W", "kernel"},
                                                           {"b", "bias"},
                                                           {"running_mean", "moving_mean"},
                                                           {"running_std", "moving_variance"}};
  const size_t first = name.find('/'), last = name.rfind('/');
  if (first == name.npos) return {};
  KerasName result{name.substr(0, first), name.substr(last + 1)};
  if (const size_t colon = result.part.find(':'); colon != std::string::npos)
    result.part.resize(colon);
  static const std::regex with_layer("(.*)_(W|b|gamma|beta|running_mean|running_std)(?:_[0-9]+)?");
  std::smatch match;
  if (std::regex_match(result.part, match, with_layer) && match[1] == result.layer) {
    const std::string word = match[2];
    const auto found = older.find(word);
    result.part = found == older.end() ? word : found->second;
  }
  return result;
}

// Reorders the rows of a dense layer after an image: channels are last in Keras, first here.
Tensor dense_after_image(const Tensor& kernel, int64_t height, int64_t width) {
  const int64_t units = kernel.shape()[1], channels = kernel.shape()[0] / (height * width);
  return transposed(kernel.reshaped({height, width, channels, units}), {3, 2, 0, 1})
      .reshaped({units, kernel.shape()[0]});
}

Tensor kernel_of(const Tensor& kernel, const std::string& name, bool depthwise) {
  if (kernel.shape().rank() == 2) return transposed(kernel, {1, 0});
  require(kernel.shape().rank() == 4, ErrorKind::corrupt,
          "[tensor '{}'] got shape {}, expected that of a dense or a convolution layer", name,
          to_string(kernel.shape()));
  if (!depthwise) return transposed(kernel, {3, 2, 0, 1});
  const Shape& s = kernel.shape();  // height, width, channels, filters per channel
  return transposed(kernel, {2, 3, 0, 1}).reshaped({s[2] * s[3], 1, s[0], s[1]});
}

// Swaps red and blue of a convolution on pictures.
void swap_red_and_blue(Tensor& weight) {
  require(weight.shape()[1] == 3, ErrorKind::corrupt,
          "[first convolution] got weights {}, expected three input channels",
          to_string(weight.shape()));
  const int64_t plane = weight.shape()[2] * weight.shape()[3];
  float* const values = weight.values<float>().data();
  for (int64_t out = 0; out < weight.shape()[0]; ++out)
    std::swap_ranges(values + out * 3 * plane, values + (out * 3 + 1) * plane,
                     values + (out * 3 + 2) * plane);
}

Tensor as_floats(const Tensor& x) { return x.dtype() == DType::f32 ? x.clone() : x.to(DType::f32); }

// The name of the batch norm that follows a convolution.
std::string norm_after(const std::string& module) {
  if (module.ends_with("downsample.0")) return module.substr(0, module.size() - 1) + "1";
  const size_t at = module.rfind("conv");
  return at == module.npos ? "" : module.substr(0, at) + "bn" + module.substr(at + 4);
}

using TensorsByName = std::map<std::string, Tensor>;

// Uses (x + bias - mean) = (x - (mean - bias)).
void fold_bias(TensorsByName& tensors, const std::string& module) {
  const auto bias = tensors.find(module + ".bias");
  const auto mean = tensors.find(norm_after(module) + ".running_mean");
  if (bias == tensors.end() || mean == tensors.end()) return;
  require(bias->second.shape() == mean->second.shape(), ErrorKind::corrupt,
          "[layer '{}'] a bias of shape {} before a batch norm of {}", module,
          to_string(bias->second.shape()), to_string(mean->second.shape()));
  for (int64_t i = 0; i < mean->second.elements(); ++i)
    mean->second.values<float>()[i] -= bias->second.values<float>()[i];
  tensors.erase(bias);
}

NamedTensors in_order(TensorsByName tensors) {
  NamedTensors result;
  for (auto& [name, tensor] : tensors) result.push_back({name, std::move(tensor)});
  return result;
}

}  // namespace

NamedTensors convert_keras(const std::string& model, const NamedTensors& published,
                           const KerasOptions& options) {
  static const std::map<std::string, std::string> parts = {{"kernel", "weight"},
                                                           {"depthwise_kernel", "weight"},
                                                           {"bias", "bias"},
                                                           {"gamma", "weight"},
                                                           {"beta", "bias"},
                                                           {"moving_mean", "running_mean"},
                                                           {"moving_variance", "running_var"}};
  TensorsByName tensors;
  std::vector<std::string> convolutions;
  for (const NamedTensor& entry : published) {
    const KerasName name = split_keras_name(entry.name);
    const auto part = parts.find(name.part);
    const std::string module = part == parts.end() ? "" : module_of(model, name.layer);
    if (module.empty()) continue;
    Tensor tensor = as_floats(entry.tensor);
    if (part->second == "weight" && name.part != "gamma") {
      if (tensor.shape().rank() == 4) convolutions.push_back(module);
      tensor = name.layer == "fc1" && tensor.shape().rank() == 2 && tensor.shape()[0] % 49 == 0
                   ? dense_after_image(tensor, 7, 7)
                   : kernel_of(tensor, entry.name, name.part == "depthwise_kernel");
    } else if (name.part == "moving_variance") {
      for (float& value : tensor.values<float>())
        value += static_cast<float>(options.epsilon - kOurEpsilon);
    }
    tensors.insert_or_assign(fmt::format("{}.{}", module, part->second), std::move(tensor));
  }
  if (!model.starts_with("vgg"))
    for (const std::string& module : convolutions) fold_bias(tensors, module);
  if (options.bgr)
    for (const char* first : {"conv1.weight", "features.0.weight", "features.0.0.weight"})
      if (const auto found = tensors.find(first); found != tensors.end())
        swap_red_and_blue(found->second);
  return in_order(std::move(tensors));
}

NamedTensors convert_faces(const NamedTensors& published) {
  TensorsByName tensors;
  const auto find = [&](const std::string& name) {
    const Tensor* const found = find_tensor(published, name);
    require(found != nullptr, ErrorKind::corrupt, "the tensor '{}' of the face network is missing",
            name);
    return as_floats(*found);
  };
  constexpr std::string_view kFilters = "/conv/filters";
  for (const NamedTensor& entry : published) {
    if (entry.name == "fc")
      tensors.emplace("fc.weight", transposed(as_floats(entry.tensor), {1, 0}));
    if (!entry.name.ends_with(kFilters)) continue;
    const std::string unit = entry.name.substr(0, entry.name.size() - kFilters.size());
    Tensor weight = kernel_of(as_floats(entry.tensor), entry.name, false);
    Tensor bias = find(unit + "/conv/bias");
    const Tensor scale = find(unit + "/scale/weights"), shift = find(unit + "/scale/biases");
    const int64_t channels = weight.shape()[0],
                  each = weight.elements() / std::max<int64_t>(1, channels);
    for (const Tensor* part : std::array<const Tensor*, 3>{&bias, &scale, &shift})
      require(part->shape() == Shape{channels}, ErrorKind::corrupt,
              "[layer '{}'] got a part of shape {}, expected [{}]", unit, to_string(part->shape()),
              channels);
    for (int64_t i = 0; i < channels; ++i) {
      const float factor = scale.values<float>()[i];
      for (float& value : weight.values<float>().subspan(i * each, each)) value *= factor;
      bias.values<float>()[i] = bias.values<float>()[i] * factor + shift.values<float>()[i];
    }
    std::string module = unit;
    std::replace(module.begin(), module.end(), '/', '.');
    tensors.emplace(module + ".weight", std::move(weight));
    tensors.emplace(module + ".bias", std::move(bias));
  }
  return in_order(std::move(tensors));
}

}  // namespace artel::transfer
