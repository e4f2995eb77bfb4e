// The parameters of a run on parameter servers: pushes the sums of a step, pulls new values.
//
// The key of a value is its place, in floats, in the region of sums that a Stepper forms: loss and
// counts first, then gradients in the order in which they become ready, then observations of
// states. So a bucket is a range of keys, and the servers' values are laid out like gradients. With
// a codec, which must not see the padding between tensors, keys skip that.
//
// If the stepper clips by norm and workers go in step, a step takes two rounds: servers hold the
// sum back and send its squares, tensor by tensor; each worker computes the same factor and sends
// it along when it pulls the values. When they go apart, each worker clips its own gradient.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/ps/client.h"
#include "artel/ps/squares.h"
#include "artel/train/stepper.h"

namespace artel {

struct RemoteOptions {
  int servers = 1;                   // with which the run began: as many ranges of keys there are
  int replicas = 1;                  // of each range
  std::optional<int64_t> delay = 0;  // nothing: no limit
  optim::Options rule = {};          // of the servers, see ps::make_rule
  bool weighted = false;             // samples may have other weights in the loss than 1
  std::string compress = {};
  int64_t push_every = 1, fetch_every = 1;  // steps, while workers run apart
  uint64_t seed = 0;
};

class RemoteParameters {
 public:
  // For one membership; the stepper, whose buckets are those of batches of `batch` samples, is
  // borrowed.
  RemoteParameters(const Membership& membership, Stepper& stepper, int64_t batch,
                   const RemoteOptions& options);

  // From now on the sums of all workers make one update (together), or those of each worker do. A
  // collective call of the workers. `steps` have been made so far, by this one. If the servers have
  // nothing yet, they get the values and the optimizer's state of worker 0, which `updates` updates
  // have made. If they have, they go on from what they have: it may be part of the next step
  // already, which workers then repeat.
  void begin(bool together, int64_t steps, int64_t updates);
  bool together() const { return together_; }
  // Together: whether servers keep gradients back until workers know all of a step's sums, which
  // say how to scale them.
  bool holds_back() const { return stepper_.update().clips() || options_.weighted; }
  // Whether servers have part of a step that the workers have not finished: they repeat it.
  bool ahead() const { return ahead_; }

  struct Step {
    int64_t number = 0;
    float learning_rate = 0;
    comm::LaneRange lanes;  // that this worker has computed
    bool stop = false;      // this worker wants to stop
    bool last = false;      // no step follows this one
    bool pushes = false;    // even if it is not this step's turn
  };
  // Together: begins to exchange a bucket, as soon as it is ready; `partials` as Stepper::Ready
  // gives them. Any thread.
  void start(int bucket, const std::vector<Memory>& partials, const Step& step);
  // Together, when all buckets were started: waits for the new values, and returns the statistics
  // of all workers, as at the beginning of a region.
  std::span<const float> finish();

  // Apart: updates with this worker's own sums, which cover `share` of a batch: on the servers
  // every push_every steps, fetching new values every fetch_every, and locally in between. A share
  // of 0 makes no update. Returns the region with the sums.
  std::span<const float> step_apart(const std::vector<Memory>& partials, const Step& step,
                                    float share);

  // Apart, after the last step: pushes sums that no push has contained yet.
  void push_rest();

  // The most steps that a worker had made when they began.
  int64_t first_step_of_all() const { return first_step_of_all_; }
  // How many lanes each worker has from this step on; `seconds` is what a lane takes here.
  comm::LaneLayout shares(int64_t step, double seconds);

  // Gets new values. `after_all`: once all workers have come as far as this one.
  void fetch(bool after_all = false);
  // Gets new values and the optimizer's state; on worker 0, all of one moment.
  void fetch_state();
  // Apart: which steps of each worker, by its number, are in what `fetch_state` last got; and how
  // many updates they made.
  const std::map<int, int64_t>& steps() const { return steps_; }
  int64_t updates() const { return updates_; }
  ps::Report report() { return client_.report(); }
  // Nobody waits for further iterations of this worker.
  void rest() { client_.run({.kind = ps::Kind::report, .flags = ps::rests, .keys = {}}); }
  void leave() { client_.leave(); }
  bool stopping() const { return client_.stopping(); }
  ps::Client::Traffic traffic() const { return client_.traffic(); }

 private:
  ps::KeyRange keys_of(const Bucket& bucket) const;
  // The sums of some keys in the order of keys, copied where the region has another one.
  float* by_key(const Memory& region, const ps::KeyRange& keys);
  void place_ranges();
  void assign_all();
  void push(float* sums, const Step& step, bool fetches);
  void run_coded(ps::Request request);
  void pull(int state, bool after_all);
  void start_coded(ps::Request request, bool last);
  void send(ps::Request request);
  void release_held();
  void wait_for_answers();
  // Apart: makes the sums of this worker's gradients those of the mean loss, and clips them.
  void scale_own(const Memory& region, float share);
  // Copies an answer to where it belongs. `state`: of the optimizer; -1: values.
  ps::Sink sink(uint64_t first_key, int state = -1);
  void place(uint64_t first_key, std::span<const float> values, bool change, int state);
  // Together, answers take effect when all have arrived: a step counts as a whole.
  ps::Sink sink_of_step(uint64_t first_key);
  void place_arrived();
  void update_here(const float* sums, float learning_rate);

  const Membership membership_;
  Stepper& stepper_;
  RemoteOptions options_;
  std::vector<Bucket> buckets_;
  std::vector<Update::Target> parts_;  // ascending
  std::vector<float> statistics_;      // of all workers
  std::vector<ps::Segment> segments_;  // the statistics, then those of parts_
  ps::Client client_;
  int states_;
  bool together_ = true;
  bool placed_ = false;
  bool assigned_ = false;  // the servers have values
  bool ahead_ = false;
  int64_t pushed_ = 0;  // the last step that a push contained
  int64_t first_step_of_all_ = 0;
  Step last_;
  std::optional<int64_t> awaited_;  // apart: all must have come so far before this one goes on
  std::vector<ps::Client::Ticket> tickets_;
  struct Arrived {
    uint64_t first_key;
    std::span<const float> values;
    bool change;
    std::vector<float> owned;  // if they do not stay where they are
  };
  std::vector<Arrived> arrived_;
  std::vector<ps::Request> held_;  // pushes of this step that servers hold back
  ps::Squares squares_;            // of them
  std::vector<float> lost_;        // what the codec has held back, by key
  std::vector<float> by_key_;      // with a codec: sums
  Memory accrued_;                 // sums of steps not pushed yet, if there can be any
  float accrued_shares_ = 0;       // how much of a batch those sums cover
  std::map<int, int64_t> steps_;
  int64_t updates_ = 0;
};

}  // namespace artel
