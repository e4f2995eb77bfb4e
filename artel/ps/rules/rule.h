// Update rules of the server, which apply a pushed gradient to the values. One file per rule.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "artel/ps/setup.h"

namespace artel::ps {

struct Step {
  int64_t number = 1;  // update number from 1; set by the server
  float learning_rate = 0;
  float scale = 1;  // factor of the gradient
};

// Stateless and thread safe: values and states live with the server.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // The names of its states. Each has the size of the values and is initially zero.
  virtual std::vector<std::string> states() const = 0;
  // True if `apply` needs all keys of a segment at once. Otherwise they may be split anywhere
  // without changing a bit.
  virtual bool needs_whole_segments() const { return false; }
  // Updates some neighbouring keys of one segment.
  virtual void apply(const Segment& segment, const Step& step, std::span<float> values,
                     std::span<const float> gradient,
                     std::span<const std::span<float>> states) const = 0;
};

// A user-defined rule without states.
using UserRule = std::function<void(const Segment& segment, const Step& step,
                                    std::span<float> values, std::span<const float> gradient)>;
using UserRules = std::map<std::string, UserRule>;

// {"name", "sgd"} and all that optim::optimizer_from_options knows (momentum, adagrad, adam, ...),
// {"name", "proximal"} (see Proximal), or the name of a user's rule. Throws for anything else.
std::unique_ptr<UpdateRule> make_rule(const optim::Options& options,
                                      const UserRules& user_rules = {});

// x := prox(x - rate * gradient) for l1 |x| + l2/2 |x|^2 + group * (lengths of groups): L1, L2,
// elastic net and group penalties. A segment that does not decay has no penalty.
struct Proximal {
  double l1 = 0, l2 = 0;
  double group = 0;        // weight of the lengths of groups
  int64_t group_size = 1;  // neighbouring keys of a segment that form a group
  // Divides each coordinate's rate by its bound on the curvature, which workers push to the state
  // of that name at the start.
  bool curvature = false;

  void visit(auto&& field) {
    field("l1", l1);
    field("l2", l2);
    field("group", group);
    field("group_size", group_size);
    field("curvature", curvature);
  }
  // The penalty of values in a decaying segment.
  double penalty(std::span<const float> values) const;
};

// Factories of the rules, used by make_rule.
std::unique_ptr<UpdateRule> make_optimizer_rule(const optim::Options& options);
std::unique_ptr<UpdateRule> make_proximal_rule(const Proximal& settings);
std::unique_ptr<UpdateRule> make_user_rule(UserRule function);

// Parses the settings of the rule "proximal". Throws for unknown settings and values out of range.
Proximal proximal_from_options(const optim::Options& options);

}  // namespace artel::ps
