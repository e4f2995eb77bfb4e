// Runs a case and compares it with the reference and with itself.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "artel/exec/device.h"
#include "tests/model_fuzz/network_case.h"

namespace artel::model_fuzz {

struct Verdict {
  std::optional<std::string> wrong;    // what is
  std::optional<std::string> refused;  // why the case could not be run, although it could be built
};

// Compares losses, gradients, metrics and weights, and predictions outside training, with the
// reference in double precision. Checks for the same bits with several workers or, if the case has
// one, with other threads, less memory and a second run. Checks that no kernel reads uninitialised
// memory.
Verdict check(const NetworkCase& network);

// Compares with the reference a training on another device, twice, which must give the same bits.
Verdict check_on(Device& device, const NetworkCase& network);

// Parts of the check. Each returns the problem, if any.
std::optional<std::string> compare_with_reference(const NetworkCase& network,
                                                  Device& device = cpu());
std::optional<std::string> compare_bits(const NetworkCase& network);
std::optional<std::string> compare_workers(const NetworkCase& network);

// The smallest case that is still wrong in the same way, found by simplifying. `wrong` is what is
// wrong with `network`; `find` finds that out.
using Find = std::function<std::optional<std::string>(const NetworkCase&)>;
NetworkCase reduce(NetworkCase network, const std::string& wrong, const Find& find);

// True if two texts report the same fault: they differ in numbers and names only.
bool same_fault(const std::string& a, const std::string& b);

}  // namespace artel::model_fuzz
