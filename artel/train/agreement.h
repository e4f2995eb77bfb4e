// Workers that were started differently are found before the first step.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "artel/comm/group.h"

namespace artel {

// What must be equal on all workers: name and value, such as {"train.batch_size", "128"}.
using Facts = std::vector<std::pair<std::string, std::string>>;

// A collective call. Throws on every worker, naming the first fact that differs, who differs and
// both values, if the facts are not those of worker 0.
void check_agreement(comm::Group& group, const Facts& facts);

// Sends text from worker 0 to all.
std::string broadcast_text(comm::Group& group, std::string text);

// Worker 0 gets the texts of all workers, in rank order; the others get nothing.
std::vector<std::string> gather_text(comm::Group& group, const std::string& text);

}  // namespace artel
