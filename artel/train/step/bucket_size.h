// Chooses the size of gradient buckets.
//
// A bucket is sent while the backward pass computes the next one. Small buckets shorten the wait
// after the last kernel. Large buckets need fewer messages.
#pragma once

#include <cstddef>

#include "artel/comm/collectives/calibration.h"

namespace artel {

// The bucket size for `gradients` bytes over a link between hosts: a power of two from 256 KiB to
// 64 MiB. With n buckets, a step waits for L n + G / (n B), the latency of n messages and the
// transfer of the last bucket. The optimum is n = sqrt(G / (L B)).
size_t bucket_bytes_for(const comm::LinkCost& link, size_t gradients);

}  // namespace artel
