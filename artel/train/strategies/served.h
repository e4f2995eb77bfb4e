// Training with parameter servers (train/strategies/remote_parameters.h), which update by the sums
// of all workers or by each worker's own.
#pragma once

#include "artel/train/strategies/remote_parameters.h"
#include "artel/train/strategy.h"

namespace artel {

// The parameters of a fit on its servers. Throws for incompatible options.
std::unique_ptr<RemoteParameters> remote_parameters(const FitView& fit, RemoteOptions options);

// Common base of both. At the end, worker 0 waits for the others and fetches the final weights.
class Served : public Strategy, public ServedFacet {
 public:
  Served(const FitView& fit, StrategyTraits traits, std::unique_ptr<RemoteParameters> remote);

  ServedFacet* served() override { return this; }
  void fetch() override { remote_->fetch_state(); }
  bool has_state() const override { return !remote_->ahead(); }
  void with_averages(const std::function<void()>& test) override;
  bool finish() override;
  void leave() override { remote_->leave(); }
  Traffic traffic() const override;
  ExchangePath path() const override;
  ps::Report server_report() override { return remote_->report(); }

 protected:
  RemoteParameters::Step remote_step(const StepOptions& options) const;

  std::unique_ptr<RemoteParameters> remote_;
};

// Each step is one update by the sums of all workers, with the bits of one worker.
class ServedTogether final : public Served {
 public:
  // Workers run apart after step `until`.
  ServedTogether(const FitView& fit, std::unique_ptr<RemoteParameters> remote,
                 std::optional<int64_t> until = {});

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  void after_step(int64_t step) override;
  std::unique_ptr<Strategy> successor() override;

 private:
  std::optional<int64_t> until_;
};

// Each worker pushes its own sums and pulls weights, as far ahead of the others as servers allow.
class ServedApart final : public Served {
 public:
  ServedApart(const FitView& fit, std::unique_ptr<RemoteParameters> remote);

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  void after_step(int64_t step) override;
  bool stops(const Outcome& outcome, bool wish) const override;
  void fetch() override;
  bool finish() override;
  // The steps of each worker that the weights contain (own_steps in train/loop/kept_states.h).
  StrategyState state() const override;

 private:
  // Divides the lanes as the servers decided before the run was resumed.
  void divide_as_before();
  void divide(const std::vector<int>& lanes_of_rank);

  bool complete_ = false;  // this worker has the weights after the last step of all workers
  // By first step: decisions for steps that some worker had already made when the run was saved.
  std::map<int64_t, std::vector<int>> earlier_shares_;
};

}  // namespace artel
