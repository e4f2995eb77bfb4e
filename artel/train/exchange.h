// How the workers of a membership add up their sums: bucket by bucket, while the backward pass is
// still running.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/comm/codecs/codec.h"
#include "artel/train/exchange_path.h"
#include "artel/train/own_state.h"
#include "artel/train/shards.h"
#include "artel/train/stepper.h"
#include "artel/train/timeline.h"

namespace artel {

struct ExchangeOptions {
  // "auto" or "allreduce", "ring", "tree", "halving", "hierarchical" or "coordinator": the way that
  // sums take.
  std::string strategy = "auto";
  // "exact": one canonical order, the same bits on any number of workers. "fast": whatever order
  // the strategy adds in.
  std::string reduction = "exact";
  // How gradients are packed for the wire, such as "top-k 1%"; empty: not at all.
  std::string compress = {};
  int coordinators = 1;  // of the strategy "coordinator"; at most as many as workers
  uint64_t seed = 0;     // of codecs that round at random
  // Each worker gets the sum of its own part only, exactly; null: all get all. Borrowed.
  const Shards* shards = nullptr;
  bool frees_sums = false;  // with shards: gives back the memory of other parts (Shards::staying)
  std::string of = {};      // in a mesh, for timelines: whose sums these are, such as "stage 1"
};

// The names that ExchangeOptions::strategy accepts.
std::vector<std::string> exchange_names();
// Whether a strategy names an algorithm that adds in an order of its own, which depends on the
// number of workers; and whether that algorithm can add in the canonical order, too.
bool has_own_order(const std::string& strategy);
bool can_be_exact(const std::string& strategy);

// Throws for unknown names and numbers out of range.
void check_options(const ExchangeOptions& options);

// Adds the partial sums of one worker into the first of them; not in the canonical order.
void add_partials(const Bucket& bucket, const std::vector<Memory>& partials);

// Memory for what the workers of a membership add up: where others can read it, if they can at all.
Memory allocate_sums(const Membership& membership, size_t bytes);

class Exchange {
 public:
  // `timeline` may be null; it is borrowed. Throws for unknown names.
  Exchange(const Membership& membership, const ExchangeOptions& options,
           Timeline* timeline = nullptr);
  // Waits for what was started. After an error, abort the group first, or this waits for others.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool lossy() const { return codec_ != nullptr; }
  // Whether sums take the way that is fastest according to the calibration of the group.
  bool chooses_by_links() const;
  // How sums are added at present.
  ExchangePath path() const;
  // What the codec has held back, bucket by bucket, and how to continue with it.
  OwnState state() const;
  void set_state(const OwnState& state, const std::vector<Bucket>& buckets);

  // Before the first bucket of a step: which buckets there will be, and who has which lanes.
  void begin_step(int64_t step, const std::vector<Bucket>& buckets, const comm::LaneLayout& layout);
  // Begins to add a bucket of all workers; `partials` as Stepper::Ready gives them. Any thread.
  void start(int bucket, const Bucket& part, const std::vector<Memory>& partials);
  // The same on a worker without lanes, which gets the sum in this region; only where sums are
  // exact and take the way of an all-reduce.
  void listen(int bucket, const Bucket& part, const Memory& region);
  // The region in which the bucket is now the sum over all lanes. Buckets are waited for in order.
  Memory wait(int bucket);

  struct Traffic {
    double waited_seconds = 0;
    double wire_seconds = 0;  // on the group's own thread
  };
  // Of all buckets that were waited for.
  const Traffic& traffic() const { return traffic_; }

 private:
  struct Pending {
    Memory total = {};
    comm::Handle handle;
    double wire_seconds = 0;
  };

  void begin(int bucket, const Bucket& part, const std::vector<Memory>& partials);
  std::string name_of(int bucket) const;
  void make_feedback(const std::vector<Bucket>& buckets);
  // The gradients of a bucket, side by side.
  std::span<float> gathered(const Bucket& part, const Memory& region);
  void reduce(comm::Group& group, int bucket, const Bucket& part,
              const std::vector<Memory>& partials);
  void reduce_exactly(comm::Group& group, const Bucket& part, const std::vector<Memory>& partials,
                      const Memory& total, const comm::Call& call);
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
  std::vector<bool> staying_;                  // by bucket, where sums are freed
  std::vector<float> side_by_side_;            // gradients of a bucket; on the group's thread
  comm::LaneLayout layout_;
  int64_t step_ = 0;
  std::vector<Pending> pending_;
  Traffic traffic_;
};

}  // namespace artel
