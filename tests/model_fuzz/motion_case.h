// A training whose gradient is always 1: every step moves each weight by an amount that is known.
//
// The network is one dense layer on inputs of ones, and the loss is its distance from a target far
// below; with the strategy "ddpg", a linear model and half the squared distance. So a lost or
// repeated update shows in the weights, and so does a step number that is wrong, however workers
// and servers share the steps and wherever the run is stopped and resumed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/random.h"

namespace artel::model_fuzz {

struct MotionCase {
  std::string optimizer = "sgd";
  std::string strategy = "auto";
  int64_t workers = 1, servers = 0, lanes = 1;
  int64_t delay = 0;        // of parameter servers; -1: no limit
  int64_t replicas = 1;     // of each range of the weights on servers
  int64_t push_every = 1;   // steps between pushes and fetches, with downpour
  int64_t blocks = 1;       // of features, with ddpg; each step is a pass over them
  int64_t local_steps = 1;  // of workers that train apart
  std::string compress = "none";
  int64_t steps = 8, epochs = 1;
  int64_t resumed_after = 0;  // steps; 0: never stopped
  int64_t resumed_by = 0;     // workers; 0: as many as before

  // True if the workers of a step push one after another.
  bool is_asynchronous() const { return strategy == "downpour" || delay != 0; }
  // True if all pushes are alike, so that the order in which they arrive does not matter.
  bool has_equal_pushes() const { return lanes == workers && resumed_by == 0 && push_every == 1; }
};

MotionCase random_motion(Random& random);
std::optional<std::string> what_is_wrong(const MotionCase& motion);

// Lines of a key and a value.
std::string to_text(const MotionCase& motion);
// Throws an Error for text that is not a case.
MotionCase parse_motion(std::string_view text, std::string_view name);

// The smallest case that is still wrong in the same way. `find` finds out what is wrong.
MotionCase reduce(MotionCase motion, const std::string& wrong,
                  const std::function<std::optional<std::string>(const MotionCase&)>& find);

}  // namespace artel::model_fuzz
