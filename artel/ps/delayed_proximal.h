// Distributed delayed proximal gradient (Li et al., NIPS 2014): sparse linear models on parameter
// servers.
//
// Minimises  sum over samples of loss(target, x.w) + penalty(w).  Features are cut into blocks,
// which are visited in an order b(1), b(2), ... In each iteration t, a worker computes the gradient
// of block b(t) over its own samples and pushes it; the servers add the gradients of all workers,
// make a proximal step for the block, and send the new weights back. A worker begins iteration t
// when it has the weights of iteration t - max(1, delay); newer ones are used if they have arrived.
//
// The step of a coordinate is rate(delay) / curvature, where the curvature
//   c * sum over samples of |x_j| * (sum over the block of |x_k|),   c = 1/4 (logistic) or 1
//   (squared)
// bounds the second derivatives of a block from above: without delay and with rate 1 each step
// lowers the objective. With a delay, u = max(1, delay) - 1 steps are made without knowing of each
// other. They overlap in more features the larger a part of all blocks they are, so the rate falls:
// rate(delay) = rate / (1 + damping * u^2 / blocks). Without a limit u can be anything up to a
// pass, and the rate is safe for any overlap of blocks: rate / (1 + 2 u).
//
// Workers' shares of the samples follow their speeds: at the end of some passes, all learn how long
// each was computing, and samples move from slow workers to fast ones. Those of a lost worker move
// to the others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "artel/ps/client.h"
#include "artel/ps/filters/push_filter.h"
#include "artel/ps/rules/rule.h"

namespace artel::ps {

// Samples that have a feature of one block, feature by feature.
struct SparseBlock {
  std::span<const uint64_t> features;  // ascending
  std::span<const uint64_t> starts;    // one more than features, in rows and values
  std::span<const uint32_t> rows;
  std::span<const float> values;
};

// A worker's samples; blocks may be read from a file as they are visited.
struct SparseSamples {
  std::vector<float> targets;  // logistic: -1 or 1
  std::function<SparseBlock(int block)> block;
};

struct SparseProblem {
  std::vector<uint64_t> cuts;        // block b has the features [cuts[b], cuts[b + 1])
  std::optional<uint64_t> constant;  // the feature without a penalty: the last one
  int64_t size = 0;                  // samples of all workers
  std::function<SparseSamples(int64_t first, int64_t last)> samples;

  int blocks() const { return static_cast<int>(cuts.size()) - 1; }
  uint64_t features() const { return cuts.back(); }
};

struct FilterOptions {
  bool key_cache = true;
  std::string compress = {};  // codec of values, both ways; empty: floats
  double kkt = 0;          // share of (penalty / workers) below which zero weights are not pushed
  double random_skip = 0;  // share of (penalty / workers) below which entries are skipped at random
  bool changes = true;     // servers send only weights that have changed

  bool masks() const { return kkt > 0 || random_skip > 0 || changes; }
};

struct DelayedProximalOptions {
  std::string loss = "logistic";  // or "squared"
  Proximal penalty = {};          // curvature is set by the solver
  std::optional<int64_t> delay = 0;
  double rate = 1;
  double damping = 0.1;
  int64_t passes = 100;
  double tolerance = 0;         // stop when a pass changes the objective by less; 0: never
  std::vector<int> order = {};  // of blocks, repeated; empty: at random, different in each pass
  uint64_t seed = 0;
  FilterOptions filters = {};
  bool balances = true;  // samples move between workers, not only from lost ones
  // A run that goes on: passes that are done, and the weights to begin with, which all workers give
  // but only worker 0 needs to have. Empty: zeros.
  int64_t passes_done = 0;
  std::vector<float> weights = {};
};

// After a pass over all blocks.
struct PassReport {
  int64_t pass = 0;
  // Sum over the samples of all workers, with the weights that each knows. With a delay or a codec
  // these differ from the servers', except in the report of the last pass.
  double loss = 0;
  double objective = 0;  // with the penalty; only worker 0 knows it
  int64_t correct = 0;   // logistic: samples on the right side
  int64_t samples = 0;
  int64_t nonzeros = 0;                    // only worker 0 knows
  double seconds = 0, seconds_waited = 0;  // of this worker, since the beginning
  int64_t sent_bytes = 0, received_bytes = 0;
  int64_t moves = 0;  // how often samples have moved between workers
};

// What a worker does, pass by pass. All calls come from one thread; after an error, abort the group
// of the workers before this is destroyed, which waits for answers.
class DelayedProximal {
 public:
  // A collective call: `workers` are those of the client's group, whose first sets up the servers;
  // all call this with equal options. Everything is borrowed.
  DelayedProximal(Client& client, comm::Group& workers, const SparseProblem& problem,
                  const DelayedProximalOptions& options);
  ~DelayedProximal();

  // Goes on until the sums of the next pass have come; later passes may have begun by then. With
  // `wish`, this worker wants to stop: all do so after the first pass that all can know of it.
  // `rests(pass)` is asked when a pass was begun, and may have no other begun before its report.
  PassReport next(bool wish, const std::function<bool(int64_t pass)>& rests = {});
  // Whether the last report was that of the last pass.
  bool done() const;
  // Whether the objective has come to rest, by the tolerance.
  bool settled() const;

  // Of all features, as the servers have them: after a rest, and at the end, those of the last
  // report.
  std::vector<float> weights();

 private:
  class Solver;
  std::unique_ptr<Solver> solver_;
};

// The keys of a problem: its features, followed by some for sums.
uint64_t problem_keys(const SparseProblem& problem, int workers);

}  // namespace artel::ps
