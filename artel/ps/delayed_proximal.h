// Distributed delayed proximal gradient (Li et al., NIPS 2014): sparse linear models on parameter
// servers.
//
// Minimises  sum over samples of loss(target, x.w) + penalty(w).  Features are cut into blocks,
// which are visited in an order b(1), b(2), ... In each iteration t, a worker computes the gradient
// of block b(t) over its own samples and pushes it. The servers add the gradients of all workers,
// make a proximal step for the block, and send the new weights back. A worker starts iteration t
// when it has the weights of iteration t - max(1, delay), and uses newer ones if they have arrived.
//
// The step of a coordinate is rate(delay) / curvature, where the curvature
//   c * sum over samples of |x_j| * (sum over the block of |x_k|),   c = 1/4 (logistic) or 1
//   (squared)
// is an upper bound on the second derivatives of a block. Without delay and with rate 1, each step
// lowers the objective. With a delay, u = max(1, delay) - 1 steps are made independently. The
// larger their share of all blocks, the more features they have in common, so the rate decreases:
// rate(delay) = rate / (1 + damping * u^2 / blocks). Without a limit, u can be as large as a pass,
// and the rate is safe for any overlap of blocks: rate / (1 + 2 u).
//
// Samples are balanced by speed: at the end of some passes, workers exchange their computing times,
// and samples move from slow to fast workers. The samples of a lost worker move to the others.
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

// The nonzero entries of one block of features, by feature.
struct SparseBlock {
  std::span<const uint64_t> features;  // ascending
  std::span<const uint64_t> starts;    // offsets in rows and values; features.size() + 1 entries
  std::span<const uint32_t> rows;
  std::span<const float> values;
};

// A worker's samples. Blocks may be read from a file when they are visited.
struct SparseSamples {
  std::vector<float> targets;  // logistic: -1 or 1
  std::function<SparseBlock(int block)> block;
};

struct SparseProblem {
  std::vector<uint64_t> cuts;        // block b has the features [cuts[b], cuts[b + 1])
  std::optional<uint64_t> constant;  // the last feature, which has no penalty
  int64_t size = 0;                  // number of samples of all workers
  std::function<SparseSamples(int64_t first, int64_t last)> samples;

  int blocks() const { return static_cast<int>(cuts.size()) - 1; }
  uint64_t features() const { return cuts.back(); }
};

struct FilterOptions {
  bool key_cache = true;
  std::string compress = {};  // codec of values in both directions; empty for floats
  double kkt = 0;          // share of (penalty / workers) below which zero weights are not pushed
  double random_skip = 0;  // share of (penalty / workers) below which entries are skipped at random
  bool changes = true;     // servers send only changed weights

  bool masks() const { return kkt > 0 || random_skip > 0 || changes; }
};

struct DelayedProximalOptions {
  std::string loss = "logistic";  // or "squared"
  Proximal penalty = {};          // the solver sets its curvature
  std::optional<int64_t> delay = 0;
  double rate = 1;
  double damping = 0.1;
  int64_t passes = 100;
  double tolerance = 0;         // stops when a pass changes the objective by less; 0 turns it off
  std::vector<int> order = {};  // order of blocks in each pass; empty for a new random order
  uint64_t seed = 0;
  FilterOptions filters = {};
  bool balances = true;  // moves samples also between live workers
  // Finished passes and initial weights of a resumed run. All workers pass `weights`, but only
  // those of worker 0 are used. Empty means zeros.
  int64_t passes_done = 0;
  std::vector<float> weights = {};
};

// Statistics after a pass over all blocks.
struct PassReport {
  int64_t pass = 0;
  // Sum over the samples of all workers, at each worker's weights. With a delay or a codec, these
  // differ from the servers' weights, except in the report of the last pass.
  double loss = 0;
  double objective = 0;  // loss plus penalty; worker 0 only
  int64_t correct = 0;   // logistic: correctly classified samples
  int64_t samples = 0;
  int64_t nonzeros = 0;                    // worker 0 only
  double seconds = 0, seconds_waited = 0;  // of this worker since the start
  int64_t sent_bytes = 0, received_bytes = 0;
  int64_t moves = 0;  // number of times samples have moved between workers
};

// A worker's side of the solver, pass by pass. Not thread safe. The destructor waits for answers,
// so abort the workers' group first after an error.
class DelayedProximal {
 public:
  // Collective: all workers of the client's group call it with equal options; the first sets up the
  // servers. Borrows all arguments.
  DelayedProximal(Client& client, comm::Group& workers, const SparseProblem& problem,
                  const DelayedProximalOptions& options);
  ~DelayedProximal();

  // Runs until the sums of the next pass have arrived; later passes may have started by then.
  // `wish` requests a stop: all workers stop after the first pass at which all know of it.
  // `rests(pass)` is called when a pass has started; if it returns true, no other pass starts
  // before its report.
  PassReport next(bool wish, const std::function<bool(int64_t pass)>& rests = {});
  // True after the report of the last pass.
  bool done() const;
  // True if the objective has converged within the tolerance.
  bool settled() const;

  // The servers' weights of all features. After a rest and at the end, they match the last report.
  std::vector<float> weights();

 private:
  class Solver;
  std::unique_ptr<Solver> solver_;
};

// Number of keys of a problem: its features, followed by keys for sums.
uint64_t problem_keys(const SparseProblem& problem, int workers);

}  // namespace artel::ps
