// Detects workers with different configurations before the first step.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "artel/comm/group.h"

namespace artel {

// Names and values that must be equal on all workers, such as {"batch_size", "128"}.
using Facts = std::vector<std::pair<std::string, std::string>>;

// One line per fact.
std::string to_text(const Facts& facts);

// Collective. If the facts differ between workers, throws on every worker and names the differing
// facts, their values, and the workers that have each value.
void check_agreement(comm::Group& group, const Facts& facts);

// Broadcasts text from worker `root`. `timeout` in seconds, for waits longer than the group's; 0
// selects the group's timeout.
std::string broadcast_text(comm::Group& group, std::string text, int root = 0, double timeout = 0);

// Collective: whether `value` is true on some worker. `label` is for messages.
bool holds_on_any(comm::Group& group, bool value, const std::string& label);

// Worker 0 gets the texts of all workers, in rank order. The others get an empty vector.
std::vector<std::string> gather_text(comm::Group& group, const std::string& text);

}  // namespace artel
