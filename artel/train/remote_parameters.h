// The parameters of a run on parameter servers: pushes the sums of a step, pulls new values.
//
// The key of a value is its place, in floats, in the region of sums that a Stepper forms: loss and
// counts first, then gradients in the order in which they become ready, then observations of
// states. So a bucket is a range of keys, and the servers' values lie like gradients do. With a
// codec, which must not see what lies between tensors, keys leave that out.
//
// Where the stepper clips by norm and all go together, a step takes two turns: servers hold the
// whole sum back and tell its squares, tensor by tensor; each worker works out the same factor and
// pulls the values with it. Apart, each worker clips its own gradient.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artel/comm/group.h"
#include "artel/ps/client.h"
#include "artel/ps/squares.h"
#include "artel/train/stepper.h"

namespace artel {

struct RemoteOptions {
  int servers = 1;
  std::optional<int64_t> delay = 0;  // nothing: no limit
  optim::Options rule = {};          // of the servers, see ps::make_rule
  std::string compress = {};
  int64_t push_every = 1, fetch_every = 1;  // steps, while workers run apart
  uint64_t seed = 0;
};

class RemoteParameters {
 public:
  // `world` has the workers and behind them the servers; the stepper, whose buckets are those of
  // batches of `batch` samples, is borrowed.
  RemoteParameters(comm::Group& world, Stepper& stepper, int64_t batch,
                   const RemoteOptions& options);

  // From now on the sums of all workers make one update (together), or each worker's own do. A
  // collective call of the `workers`; the first one gives the servers the values and the
  // optimizer's state of worker 0. `steps` have been made so far.
  void begin(comm::Group& workers, bool together, int64_t steps);
  bool together() const { return together_; }

  struct Step {
    int64_t number = 0;
    float learning_rate = 0;
    comm::LaneRange lanes;  // that this worker has computed
    bool stop = false;      // this worker wants to
    bool last = false;      // no other step follows
  };
  // Together: begins to exchange a bucket, as soon as it is ready; `partials` as Stepper::Ready
  // gives them. Any thread.
  void start(int bucket, const std::vector<std::byte*>& partials, const Step& step);
  // Together, when all buckets were started: waits for the new values, and returns the beginning of
  // a region with the statistics of all workers.
  const std::byte* finish();

  // Apart: makes the update with this worker's own sums, which are `share` of a batch: on the
  // servers every push_every steps, with new values from there every fetch_every, and meanwhile
  // here. A share of 0 makes no update. Returns the region with the sums.
  const std::byte* step_apart(const std::vector<std::byte*>& partials, const Step& step,
                              float share);

  // Who has how many lanes from a step on; `seconds` is what a lane takes here.
  comm::LaneLayout shares(int64_t step, double seconds);

  // New values, and the optimizer's state if `with_state`. `after_all`: when all workers have come
  // as far as this one.
  void fetch(bool with_state, bool after_all);
  ps::Report report() { return client_.report(); }
  void leave() { client_.leave(); }
  bool stopping() const { return client_.stopping(); }
  ps::Client::Traffic traffic() const { return client_.traffic(); }

 private:
  ps::KeyRange keys_of(const Bucket& bucket) const;
  // The sums of some keys in the order of keys, copied where the region has another one.
  float* by_key(std::byte* region, const ps::KeyRange& keys);
  void assign_all();
  void run_coded(ps::Request request);
  void start_coded(ps::Request request, bool last);
  void send(const ps::Request& request);
  void release_held();
  void wait_for_answers();
  void clip_own(std::byte* region, float share);
  // Copies an answer to where it belongs. `state`: of the optimizer; -1: values.
  ps::Sink sink(uint64_t first_key, int state = -1);
  void place(uint64_t first_key, std::span<const float> values, bool change, int state);
  void update_here(const float* sums, float learning_rate);

  Stepper& stepper_;
  RemoteOptions options_;
  std::vector<Bucket> buckets_;
  std::vector<Update::Target> parts_;  // ascending
  std::vector<ps::Segment> segments_;  // the statistics, then those of parts_
  ps::Client client_;
  int states_;
  bool together_ = true;
  bool assigned_ = false;
  int64_t pushes_ = 0;
  std::vector<float> statistics_;  // of all workers
  std::vector<ps::Client::Ticket> tickets_;
  std::vector<ps::Request> held_;  // pushes of this step that servers hold back
  ps::Squares squares_;            // of them
  std::vector<float> lost_;        // by the codec, by key
  std::vector<float> by_key_;      // with a codec: sums
  comm::SharedBytes accrued_;      // sums of steps that were not pushed yet, if there can be any
  float accrued_shares_ = 0;       // of batches, that those sums are
};

}  // namespace artel
