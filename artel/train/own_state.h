// What a worker keeps for itself, and what a run that goes on with the same bits needs of it: the
// residuals of codecs, and with local steps weights and optimizer state that have not met yet.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "artel/comm/codecs/error_feedback.h"
#include "artel/comm/group.h"

namespace artel {

using OwnState = std::map<std::string, std::vector<float>>;

// Under names that begin with `name`; restoring gives what is there, and leaves the matrices alone.
void keep_residuals(const comm::ErrorFeedback& feedback, const std::string& name, OwnState& state);
void restore_residuals(const OwnState& state, const std::string& name,
                       comm::ErrorFeedback& feedback);

// Collective calls. Worker 0 gets the states of all, in rank order; the others get nothing.
std::vector<OwnState> gather_states(comm::Group& group, const OwnState& own);
// The inverse: each worker gets its own of those that worker 0 has, one for each.
OwnState scatter_states(comm::Group& group, const std::vector<OwnState>& all);

}  // namespace artel
