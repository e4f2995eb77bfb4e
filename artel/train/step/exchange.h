// Adds the sums of a membership's workers, bucket by bucket, during the backward pass.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/comm/codecs/codec.h"
#include "artel/train/loop/timeline.h"
#include "artel/train/parts/own_state.h"
#include "artel/train/parts/shards.h"
#include "artel/train/step/exchange_path.h"
#include "artel/train/step/stepper.h"
#include "artel/train/step/touched_rows.h"

namespace artel {

struct ExchangeOptions {
  // The algorithm: "auto", "allreduce", "ring", "tree", "halving", "hierarchical", or
  // "coordinator".
  std::string strategy = "auto";
  // "exact": one canonical order, with the same bits on any number of workers. "fast": the order of
  // the algorithm.
  std::string reduction = "exact";
  // The gradient codec, such as "top-k 1%"; empty for none.
  std::string compress = {};
  int coordinators = 1;  // for the strategy "coordinator"; at most the number of workers
  uint64_t seed = 0;     // for codecs that round at random
  // If set, each worker receives only the exact sum of its own part. Borrowed.
  const Shards* shards = nullptr;
  bool frees_sums = false;  // with shards: releases the memory of other parts (Shards::staying)
  std::string of = {};      // in a mesh, for timelines: the owner of the sums, such as "stage 1"
};

// The names that ExchangeOptions::strategy accepts.
std::vector<std::string> exchange_names();
// True if the strategy names an algorithm with its own order of additions, which depends on the
// number of workers. can_be_exact: it can also add in the canonical order.
bool has_own_order(const std::string& strategy);
// True if the strategy names an algorithm instead of leaving the choice to Artel.
bool names_algorithm(const std::string& strategy);
bool can_be_exact(const std::string& strategy);

// Throws for unknown names and numbers out of range.
void check_options(const ExchangeOptions& options);

// Adds all partial sums of one worker into the first one, not in the canonical order.
void add_partials(const Bucket& bucket, const std::vector<Memory>& partials);

// Allocates memory for sums, readable by the other workers of a membership where possible.
Memory allocate_sums(const Membership& membership, size_t bytes);

class Exchange {
 public:
  // Borrows `timeline`, which may be null. Throws for unknown names.
  Exchange(const Membership& membership, const ExchangeOptions& options,
           Timeline* timeline = nullptr);
  // Waits for started operations. After an error, abort the group first; otherwise this waits for
  // others.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool lossy() const { return codec_ != nullptr; }
  // True if the algorithm is chosen by the calibration of the group.
  bool chooses_by_links() const;
  // The current algorithm and order of additions. Empty without other workers.
  ExchangePath path() const;
  // The codec's residuals, by bucket.
  OwnState state() const;
  void set_state(const OwnState& state, const std::vector<Bucket>& buckets);

  // Call before the first bucket of a step, with its buckets and the lanes of each worker.
  void begin_step(int64_t step, const std::vector<Bucket>& buckets, const comm::LaneLayout& layout);
  // Starts adding a bucket over all workers, with `partials` as from Stepper::Ready. A worker
  // without lanes passes one region, which adds nothing and receives the sum. Any thread.
  void start(int bucket, const Bucket& part, const std::vector<Memory>& partials);
  // Returns the region with the bucket's sum over all lanes. Wait for buckets in order.
  Memory wait(int bucket);

  struct Traffic {
    double waited_seconds = 0;
    double wire_seconds = 0;  // on the group's thread
  };
  // Totals over all buckets waited for.
  const Traffic& traffic() const { return traffic_; }

 private:
  struct Pending {
    Memory total = {};
    comm::Handle handle;
    double wire_seconds = 0;
  };

  // True if this worker has lanes in the current step.
  bool has_lanes() const { return layout_.lanes_of_rank[membership_.rank()] > 0; }
  // The beginnings of this worker's partial sums, each at `offset`; empty without lanes.
  std::vector<std::byte*> own_sums(const std::vector<Memory>& partials, size_t offset) const;
  std::string name_of(int bucket) const;
  void make_feedback(const std::vector<Bucket>& buckets);
  // The gradients of a bucket, contiguous.
  std::span<float> gathered(const Bucket& part, const Memory& region);
  void reduce(comm::Group& group, int bucket, const Bucket& part,
              const std::vector<Memory>& partials);
  // In the canonical order: by lane reduction, or at a coordinator.
  void reduce_exactly(comm::Group& group, int bucket, const Bucket& part,
                      const std::vector<Memory>& partials, const comm::Call& call);
  // The same, with the touched rows of embedding tables in place of whole tables.
  void reduce_with_rows(comm::Group& group, int bucket, const Bucket& part,
                        const std::vector<Memory>& partials, const comm::Call& call);
  void reduce_rows(comm::Group& group, int bucket, const Bucket::Gradient& table,
                   const TouchedRows& rows, const std::vector<Memory>& partials,
                   const comm::Call& call);
  // Empty if there are too many to send them separately.
  std::optional<TouchedRows> rows_of_all(comm::Group& group, const Bucket::Gradient& table,
                                         const std::vector<Memory>& partials,
                                         const comm::Call& call) const;
  void reduce_shards(comm::Group& group, int bucket, const Bucket& part,
                     const std::vector<Memory>& partials, const comm::Call& call);
  void gather_at_coordinator(comm::Group& group, int bucket, const Bucket& part,
                             const std::vector<Memory>& partials);
  void reduce_packed(comm::Group& group, int bucket, const Bucket& part,
                     const std::vector<Memory>& partials);

  Membership membership_;
  ExchangeOptions options_;
  Timeline* timeline_;
  comm::Algorithm algorithm_ = comm::Algorithm::automatic;
  std::unique_ptr<comm::Codec> codec_;
  std::vector<comm::ErrorFeedback> feedback_;  // by bucket
  std::vector<bool> staying_;                  // by bucket, if sums are freed
  std::vector<float> side_by_side_;            // gradients of a bucket; used on the group's thread
  std::vector<Memory> packed_rows_;            // of each partial sum; on the group's thread
  comm::LaneLayout layout_;
  int64_t step_ = 0;
  std::vector<Pending> pending_;
  Traffic traffic_;
};

}  // namespace artel
