#include "artel/predict/load_weights.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/checkpoint/weights.h"
#include "artel/predict/sparse_weights.h"
#include "artel/tensor/quantised.h"

namespace artel {

namespace {

// True if the weights contain a quantised matrix for an f32 parameter.
bool has_matrices_for_numbers(const Parameters& parameters, const NamedTensors& weights) {
  return std::ranges::any_of(weights, [&](const NamedTensor& weight) {
    const auto name = name_of_codes(weight.name);
    return name && parameters.contains(*name) && !parameters.contains(weight.name);
  });
}

void check_fit(const Parameters& parameters, const NamedTensors& weights,
               const std::function<bool(const std::string&)>& wanted) {
  std::vector<checkpoint::Expected> expected;
  for (const ParameterEntry& entry : parameters.entries())
    if (!wanted || wanted(entry.name)) expected.push_back({entry.name, entry.shape});
  const checkpoint::Match match = checkpoint::match(expected, weights);
  require(match.complete(), ErrorKind::shape, "the weights do not fit the model:\n{}",
          match.report());
  for (const NamedTensor& weight : weights) {
    const DType type = weight.tensor.dtype();
    if ((type != DType::i8 && type != DType::u8) || !parameters.contains(weight.name) ||
        parameters.entry(weight.name).type == type || (wanted && !wanted(weight.name)))
      continue;
    fail(ErrorKind::unsupported,
         "the weight '{}' has the type {} of a quantised network without its scales; export the "
         "weights with 16 or 32 bits",
         weight.name, to_string(type));
  }
}

}  // namespace

NamedTensors fitted_weights(const Parameters& parameters, const NamedTensors& weights,
                            const std::function<bool(const std::string&)>& wanted) {
  NamedTensors fitted = with_zeros(weights);
  if (has_matrices_for_numbers(parameters, fitted)) fitted = expand_all(fitted);
  check_fit(parameters, fitted, wanted);
  return fitted;
}

void load_weights(Parameters& parameters, const NamedTensors& weights,
                  const std::function<bool(const std::string&)>& wanted) {
  for (const NamedTensor& weight : fitted_weights(parameters, weights, wanted))
    if (parameters.contains(weight.name) && (!wanted || wanted(weight.name)))
      parameters.set(weight.name, weight.tensor);
}

}  // namespace artel
