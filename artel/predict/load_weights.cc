#include "artel/predict/load_weights.h"

#include "artel/base/error.h"
#include "artel/checkpoint/weights.h"

namespace artel {

void load_weights(Parameters& parameters, const NamedTensors& weights,
                  const std::function<bool(const std::string&)>& wanted) {
  const auto takes = [&](const std::string& name) { return !wanted || wanted(name); };
  std::vector<checkpoint::Expected> expected;
  for (const ParameterEntry& entry : parameters.entries())
    if (takes(entry.name)) expected.push_back({entry.name, entry.shape});
  const checkpoint::Match match = checkpoint::match(expected, weights);
  require(match.complete(), ErrorKind::shape, "the weights do not fit the model:\n{}",
          match.report());
  for (const NamedTensor& weight : weights)
    if (parameters.contains(weight.name) && takes(weight.name))
      parameters.set(weight.name, weight.tensor);
}

}  // namespace artel
