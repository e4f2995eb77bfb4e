#include "artel/train/loop/introduction.h"

#include "artel/base/log.h"
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

bool Introduction::may_compare_files() const {
  return s_.cluster.group() && !s_.alone && files_.pending();
}

void Introduction::compare_files() {
  if (!may_compare_files()) return;
  comm::Group* const group = s_.cluster.group();
  if (const auto files = files_.disputed(*group)) check_agreement(*group, *files);
  if (!files_.pending() && s_.cluster.elastic()) publish();
}

void Introduction::finish_comparing_files() {
  if (!may_compare_files()) return;
  if (!holds_on_any(*s_.cluster.group(), s_.stop_signal != 0, "signals"))
    files_.wait([this] { return s_.stop_signal != 0; });
  compare_files();
  if (files_.pending() && s_.cluster.rank() == 0)
    log(LogLevel::warning,
        "the run was stopped before all workers had read their data, so the data has not been "
        "compared");
}

}  // namespace artel
