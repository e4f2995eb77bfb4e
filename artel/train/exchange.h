// How the sums of the workers meet: bucket by bucket, while the backward pass goes on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "artel/comm/group.h"
#include "artel/train/stepper.h"

namespace artel {

struct ExchangeOptions {
  // "auto", "ring", "tree", "halving", "hierarchical" or "coordinator": which way sums take.
  std::string strategy = "auto";
  // "exact": one canonical order, the same bits on any number of workers. "fast": whatever order
  // the strategy adds in.
  std::string reduction = "exact";
};

// The names that ExchangeOptions::strategy accepts.
std::vector<std::string> strategy_names();

class Exchange {
 public:
  // `group` may be null: one worker. Throws for unknown names.
  Exchange(comm::Group* group, const ExchangeOptions& options);

  // The lanes of each worker, contiguous, in rank order.
  void set_layout(comm::LaneLayout layout) { layout_ = std::move(layout); }
  const comm::LaneLayout& layout() const { return layout_; }

  // Begins to add a bucket of all workers; `partials` as Stepper::Ready gives them. Any thread.
  void start(int bucket, const Bucket& part, const std::vector<std::byte*>& partials);
  // The region in which the bucket is now the sum over all lanes. Buckets are waited for in order.
  std::byte* wait(int bucket);

  struct Traffic {
    double waited_seconds = 0;
    int64_t bytes = 0;  // reduced, of one worker
  };
  const Traffic& traffic() const { return traffic_; }

 private:
  void reduce(comm::Group& group, int bucket, const Bucket& part,
              const std::vector<std::byte*>& partials);
  void gather_at_coordinator(comm::Group& group, int bucket, const Bucket& part,
                             const std::vector<std::byte*>& partials);

  comm::Group* group_;
  comm::Algorithm algorithm_ = comm::Algorithm::automatic;
  bool exact_, coordinator_;
  comm::LaneLayout layout_;
  struct Pending {
    std::byte* total = nullptr;
    comm::Handle handle;
  };
  std::vector<Pending> pending_;
  Traffic traffic_;
};

}  // namespace artel
