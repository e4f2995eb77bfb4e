// A worker's own state that a run needs to continue with the same bits: the residuals of codecs
// and, with local steps, weights and optimizer state since the last average.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "artel/comm/codecs/error_feedback.h"
#include "artel/comm/group.h"

namespace artel {

using OwnState = std::map<std::string, std::vector<float>>;

// Stores under names that begin with `name`. Restoring sets existing entries and keeps the
// matrices.
void keep_residuals(const comm::ErrorFeedback& feedback, const std::string& name, OwnState& state);
void restore_residuals(const OwnState& state, const std::string& name,
                       comm::ErrorFeedback& feedback);

// Collective: worker 0 gets the states of all, in rank order; the others get none.
std::vector<OwnState> gather_states(comm::Group& group, const OwnState& own);

}  // namespace artel
