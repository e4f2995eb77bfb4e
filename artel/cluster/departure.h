// Announces that a worker leaves its run. Internal to cluster.
#pragma once

#include "artel/cluster/door.h"
#include "artel/cluster/membership.h"

namespace artel {

// Tells all other members that `self` leaves, so that none of them waits for it. Returns when they
// have received the message, or after a second.
void announce_departure(const Door& door, const Membership& membership,
                        const comm::control::Participant& self);

}  // namespace artel
