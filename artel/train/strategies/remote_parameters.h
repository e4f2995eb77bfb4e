// The parameters of a run on parameter servers: pushes the sums of a step, pulls new values.
//
// The key of a value is its offset, in floats, in a Stepper's region of sums: loss and counts
// first, then gradients in the order in which they become ready, then observations of states. So a
// bucket is a range of keys, and the servers' values are laid out like gradients. With a codec,
// which must not see the padding between tensors, keys skip the padding.
//
// If the stepper clips by norm and workers train in step, a step takes two rounds. Servers hold the
// sum back and send its squares, tensor by tensor. Each worker computes the same factor and sends
// it when it pulls the values. If workers run apart, each clips its own gradient.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/ps/client.h"
#include "artel/ps/squares.h"
#include "artel/train/step/stepper.h"

namespace artel {

struct RemoteOptions {
  int servers = 1;                   // initial number of servers, and number of key ranges
  int replicas = 1;                  // per range
  std::optional<int64_t> delay = 0;  // empty: no limit
  optim::Options rule = {};          // update rule of the servers, see ps::make_rule
  // Only the touched rows of embedding tables are sent (train/step/touched_rows.h) if servers
  // update only these rows, because the update rule does not change rows without a gradient
  // (touched) or because of `lazy_rows` (lazy).
  enum class Rows { whole, touched, lazy };
  Rows rows = Rows::whole;
  bool weighted = false;  // samples may have weights other than 1
  std::string compress = {};
  int64_t push_every = 1, fetch_every = 1;  // steps, if workers run apart
  uint64_t seed = 0;
};

class RemoteParameters {
 public:
  // Valid for one membership. Borrows the stepper, which uses the buckets for batches of `batch`
  // samples.
  RemoteParameters(const Membership& membership, Stepper& stepper, int64_t batch,
                   const RemoteOptions& options);

  // Collective among workers. Starts updates by the sums of all workers (`together`) or by those of
  // each worker. This worker has made `steps` steps. Servers without values get the values and the
  // optimizer state of worker 0, after `updates` updates. Servers with values keep them. These may
  // already contain part of the next step, which workers then repeat.
  void begin(bool together, int64_t steps, int64_t updates);
  bool together() const { return together_; }
  // Together: true if servers hold gradients back until workers know all sums of a step, which
  // determine their scale.
  bool holds_back() const { return stepper_.update().clips() || options_.weighted; }
  // True if servers have part of a step that the workers have not finished and will repeat.
  bool ahead() const { return ahead_; }

  struct Step {
    int64_t number = 0;
    float learning_rate = 0;
    comm::LaneRange lanes;  // computed by this worker
    bool stop = false;      // this worker wants to stop
    bool last = false;      // no step follows this one
    bool pushes = false;    // even if no push is due
  };
  // Together: starts the exchange of a bucket, with `partials` as from Stepper::Ready. Any thread.
  void start(int bucket, const std::vector<Memory>& partials, const Step& step);
  // Together: waits for the new values after all buckets have been started. Returns the statistics
  // of all workers, laid out like the beginning of a region.
  std::span<const float> finish();

  // Apart: updates with this worker's own sums, which cover `share` of a batch. Pushes to the
  // servers every push_every steps, fetches new values every fetch_every steps, and updates locally
  // in between. A share of 0 makes no update. Returns the region with the sums.
  std::span<const float> step_apart(const std::vector<Memory>& partials, const Step& step,
                                    float share);

  // Apart: pushes sums that were not pushed yet. Call after the last step.
  void push_rest();

  // The highest step number of any worker at the beginning.
  int64_t first_step_of_all() const { return first_step_of_all_; }
  // The lanes of each worker from this step on. `seconds` is this worker's time per lane.
  comm::LaneLayout shares(int64_t step, double seconds);

  // Fetches new values. `after_all`: waits until all workers have made as many steps as this one.
  void fetch(bool after_all = false);
  // Fetches new values and the optimizer state; on worker 0 as a consistent snapshot.
  void fetch_state();
  // Apart: the steps of each worker, by its number, in the last `fetch_state`; and the number of
  // their updates.
  const std::map<int, int64_t>& steps() const { return steps_; }
  int64_t updates() const { return updates_; }
  // Apart: the lanes of each worker in that state, by first step.
  const std::map<int64_t, std::vector<int>>& decided_shares() const { return decided_shares_; }
  ps::Report report() { return client_.report(); }
  // Tells the servers that no further iterations of this worker follow.
  void report_end() { client_.run({.kind = ps::Kind::report, .flags = ps::rests, .keys = {}}); }
  void leave() { client_.leave(); }
  bool stopping() const { return client_.stopping(); }
  ps::Client::Traffic traffic() const { return client_.traffic(); }

 private:
  ps::KeyRange keys_of(const Bucket& bucket) const;
  // The sums of some keys in the order of keys, copied where the region's order differs.
  float* by_key(const Memory& region, const ps::KeyRange& keys);
  void place_ranges();
  void assign_all();
  // The gradients of a bucket that travel by rows.
  std::vector<Bucket::Gradient> tables_in(const Bucket& bucket) const;
  // Exchanges the rows of a table that any worker has touched. Returns false if these are too many.
  bool start_rows(const Bucket::Gradient& table, const std::vector<Memory>& partials,
                  ps::Request request);
  void push(float* sums, const Step& step, bool fetches);
  void run_coded(ps::Request request);
  void pull(int state, bool after_all);
  void start_coded(ps::Request request, bool last);
  void send(ps::Request request);
  void release_held();
  void wait_for_answers();
  // Without lockstep: scales this worker's gradients to the mean loss and clips them.
  void scale_own(const Memory& region, float share);
  // Copies an answer to its place. `state`: index of an optimizer state, or -1 for values.
  ps::Sink sink(uint64_t first_key, int state = -1);
  void place(uint64_t first_key, std::span<const float> values, bool change, int state);
  // Together: applies answers once all have arrived, so that a step takes effect as a whole.
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
  int64_t pushed_ = 0;  // last pushed step
  int64_t first_step_of_all_ = 0;
  Step last_;
  std::optional<int64_t> awaited_;  // apart: all must reach it before this one continues
  std::vector<ps::Client::Ticket> tickets_;
  struct Arrived {
    uint64_t first_key;
    std::span<const float> values;
    bool change;
    std::vector<float> owned;  // if they have to be copied
  };
  std::vector<Arrived> arrived_;
  // Rows of a table in flight.
  struct SentRows {
    std::vector<uint64_t> keys;
    std::vector<std::vector<float>> partials;
  };
  std::vector<std::unique_ptr<SentRows>> sent_rows_;
  std::vector<ps::Request> held_;  // pushes of this step held back by servers
  ps::Squares squares_;            // of the held pushes
  std::vector<float> lost_;        // the codec's residuals, by key
  std::vector<float> by_key_;      // sums in the order of keys, with a codec
  Memory accrued_;                 // sums of unpushed steps, if any are possible
  float accrued_shares_ = 0;       // share of a batch covered by those sums
  std::map<int, int64_t> steps_;
  std::map<int64_t, std::vector<int>> decided_shares_;
  int64_t updates_ = 0;
};

}  // namespace artel
