#include "artel/predict/load_weights.h"

#include "artel/base/error.h"
#include "artel/checkpoint/weights.h"

namespace artel {

void check_weights_fit(const Parameters& parameters, const NamedTensors& weights,
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
        (wanted && !wanted(weight.name)))
      continue;
    fail(ErrorKind::unsupported,
         "the weight '{}' is {}, as in quantised networks, whose scales are not applied; write the "
         "file again with numbers of 16 or 32 bits",
         weight.name, to_string(type));
  }
}

void load_weights(Parameters& parameters, const NamedTensors& weights,
                  const std::function<bool(const std::string&)>& wanted) {
  check_weights_fit(parameters, weights, wanted);
  for (const NamedTensor& weight : weights)
    if (parameters.contains(weight.name) && (!wanted || wanted(weight.name)))
      parameters.set(weight.name, weight.tensor);
}

}  // namespace artel
