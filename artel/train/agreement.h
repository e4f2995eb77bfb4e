// Workers that were started differently are found before the first step.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "artel/comm/group.h"

namespace artel {

// What must be equal on all workers: name and value, such as {"batch_size", "128"}.
using Facts = std::vector<std::pair<std::string, std::string>>;

// A line for each.
std::string to_text(const Facts& facts);

// A collective call. If the facts are not the same everywhere, throws on every worker and names
// those that differ, their values, and which workers have which.
void check_agreement(comm::Group& group, const Facts& facts);

// Sends text from one worker to all.
std::string broadcast_text(comm::Group& group, std::string text, int root = 0);

// Worker 0 gets the texts of all workers, in rank order; the others get nothing.
std::vector<std::string> gather_text(comm::Group& group, const std::string& text);

}  // namespace artel
