#include "artel/train/loop/introduction.h"

#include "artel/base/version.h"
#include "artel/exec/numerics.h"
#include "artel/train/loop/facts.h"

namespace artel {

Facts Introduction::facts() const {
  Facts facts = {{"version", std::string(kHeaderVersion)},
                 {"numerics", std::to_string(kNumericsVersion)},
                 {"servers", std::to_string(s_.cluster.servers())},
                 {"device", s_.choices.device->facts()}};
  TrainerOptions asked = s_.options;
  asked.strategy_options = asked_;
  for (const Facts& part : {facts_of(asked), facts_of(options_), facts_of("training", &set_)})
    facts.insert(facts.end(), part.begin(), part.end());
  return facts;
}

// Files come before samples, because different files explain different samples.
void Introduction::publish() {
  Facts own = files_.facts();
  for (auto& fact : facts()) own.push_back(std::move(fact));
  own.emplace_back("fewest workers", std::to_string(s_.cluster.options().least));
  s_.cluster.introduce(to_text(own));
}

void Introduction::compare(comm::Group& group) {
  Facts all = files_.disputed(group).value_or(Facts());
  for (auto& fact : facts()) all.push_back(std::move(fact));
  check_agreement(group, all);
  if (!files_.pending() && s_.cluster.elastic()) publish();
}

void Introduction::compare_files() {
  comm::Group* const group = s_.cluster.group();
  if (!group || s_.alone || !files_.pending()) return;
  if (const auto files = files_.disputed(*group)) check_agreement(*group, *files);
  if (!files_.pending() && s_.cluster.elastic()) publish();
}

}  // namespace artel
