// A case of either kind: a network, or every third time a graph of ops.
#pragma once

#include <string>
#include <variant>

#include "tests/model_fuzz/check.h"
#include "tests/model_fuzz/random_graph.h"

namespace artel::model_fuzz {

using AnyCase = std::variant<NetworkCase, GraphCase>;

// Case `number` of a seed.
AnyCase make_case(uint64_t seed, uint64_t number);
// One that was written or printed.
AnyCase read_case(const std::string& file);

Verdict check(const AnyCase& any);

// A fault that this program adds itself, to see that it finds, attributes and reduces one.
struct Pretence {
  std::string fault;  // wrong, crash or hang; empty: none
  std::string at;     // in cases whose text contains this
};
void pretend(Pretence pretence);

// How long a case may take in a process of its own, in seconds.
void set_patience(double seconds);

// The smallest case with the same fault. With `apart` each try has a process of its own, so that
// it may crash or hang.
AnyCase reduce(const AnyCase& any, const std::string& wrong, bool apart);

// What is wrong when the case is run in a process of its own: what `check` says, or how that
// process ended.
std::optional<std::string> wrong_apart(const AnyCase& any);

std::string to_text(const AnyCase& any);
// Returns the path of the file that runs the case again.
std::string write_case(const AnyCase& any, const std::string& folder, const std::string& name);

}  // namespace artel::model_fuzz
