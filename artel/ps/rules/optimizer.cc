// Optimizers on the server. Uses the optim layer (SGD, momentum, Adagrad, Adam, ...), so servers
// and workers compute the same bits.
#include "artel/optim/optimizer.h"

#include "artel/ps/rules/rule.h"

namespace artel::ps {
namespace {

class OptimizerRule : public UpdateRule {
 public:
  explicit OptimizerRule(const optim::OptimizerConfig& config)
      : optimizer_(optim::make_optimizer(config)),
        whole_(optimizer_->scope() != optim::Optimizer::Scope::element) {}

  std::vector<std::string> states() const override { return optimizer_->slots(); }
  bool needs_whole_segments() const override { return whole_; }

  void apply(const Segment& segment, const Step& step, std::span<float> values,
             std::span<const float> gradient,
             std::span<const std::span<float>> states) const override {
    ThreadPool here(1);
    optimizer_->update(here, {segment.name, segment.decays}, step.number, step.learning_rate,
                       step.scale, values, gradient, states);
  }

 private:
  std::unique_ptr<optim::Optimizer> optimizer_;
  bool whole_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_optimizer_rule(const optim::Options& options) {
  return std::make_unique<OptimizerRule>(optim::optimizer_from_options(options));
}

}  // namespace artel::ps
