// A case of any kind: a network, a network for several workers, a graph of ops, or a motion.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tests/model_fuzz/check.h"
#include "tests/model_fuzz/motion_case.h"
#include "tests/model_fuzz/random_graph.h"

namespace artel::model_fuzz {

using AnyCase = std::variant<NetworkCase, GraphCase, MotionCase>;

// Which cases are made: networks, meshes and graphs in turn, or one kind.
inline const std::vector<std::string> kKinds = {"all", "networks", "graphs", "meshes", "motions"};
// Case `number` of a seed.
AnyCase make_case(uint64_t seed, uint64_t number, const std::string& kind = "all");
// True if several workers train it.
bool is_mesh(const AnyCase& any);
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

// The problem of the case in a separate process: the result of `check`, or how that process ended.
std::optional<std::string> wrong_apart(const AnyCase& any);

std::string to_text(const AnyCase& any);
// Returns the path of the file that runs the case again.
std::string write_case(const AnyCase& any, const std::string& folder, const std::string& name);

}  // namespace artel::model_fuzz
