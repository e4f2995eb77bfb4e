#include "artel/ps/rules/rule.h"

namespace artel::ps {

std::unique_ptr<UpdateRule> make_rule(const optim::Options& options, const UserRules& user_rules) {
  const auto found = options.find("name");
  const std::string name = found == options.end() ? "sgd" : found->second;
  if (name == "proximal") return make_proximal_rule(proximal_from_options(options));
  if (const auto own = user_rules.find(name); own != user_rules.end())
    return make_user_rule(own->second);
  return make_optimizer_rule(options);
}

}  // namespace artel::ps
