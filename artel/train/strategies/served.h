// Parameter servers make the updates (train/remote_parameters.h): of the sums of all workers, or of
// each worker's own.
#pragma once

#include "artel/train/remote_parameters.h"
#include "artel/train/strategy.h"

namespace artel {

// The parameters of a fit on its servers. Throws for options that do not go with them.
std::unique_ptr<RemoteParameters> remote_parameters(const Fit& fit, RemoteOptions options);

// What both have in common. At the end, worker 0 waits for the others and gets the final weights.
class Served : public Strategy {
 public:
  Served(const Fit& fit, std::unique_ptr<RemoteParameters> remote);

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
  // After step `until`, workers go apart.
  ServedTogether(const Fit& fit, std::unique_ptr<RemoteParameters> remote,
                 std::optional<int64_t> until = {});

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  void after_step(int64_t step) override;
  bool in_step() const override { return true; }  // servers have the state of the optimizer
  std::unique_ptr<Strategy> successor() override;

 private:
  std::optional<int64_t> until_;
};

// Each worker pushes its own sums and pulls weights, as far ahead of the others as servers allow.
class ServedApart final : public Served {
 public:
  ServedApart(const Fit& fit, std::unique_ptr<RemoteParameters> remote);

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  void after_step(int64_t step) override;
  bool collective() const override { return false; }
  bool stops(const Outcome& outcome, bool wish) const override;
  void fetch() override;
  bool finish() override;
  // The steps of each worker that the weights contain (own_steps in train/kept_states.h).
  StrategyState state() const override;

 private:
  bool complete_ = false;  // this worker has the weights after the last step of all
};

}  // namespace artel
