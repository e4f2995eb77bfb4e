// The parts of a run's data.
//
//   artel::Run run("mnist.toml");
//   const double loss = run.evaluate(artel::Part::validation).loss;
#pragma once

#include <string_view>

namespace artel {

// The network learns from `train`; after each epoch it is evaluated on `validation` or, without
// one, on `test`.
enum class Part { train, validation, test };

// The name used by `artel evaluate --on` and in metrics.
std::string_view to_string(Part part);

}  // namespace artel
