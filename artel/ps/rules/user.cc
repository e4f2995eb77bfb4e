#include "artel/ps/rules/rule.h"

namespace artel::ps {
namespace {

class FunctionRule : public UpdateRule {
 public:
  explicit FunctionRule(UserRule function) : function_(std::move(function)) {}

  std::vector<std::string> states() const override { return {}; }
  void apply(const Segment& segment, const Step& step, std::span<float> values,
             std::span<const float> gradient, std::span<const std::span<float>>) const override {
    function_(segment, step, values, gradient);
  }

 private:
  UserRule function_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_user_rule(UserRule function) {
  return std::make_unique<FunctionRule>(std::move(function));
}

}  // namespace artel::ps
