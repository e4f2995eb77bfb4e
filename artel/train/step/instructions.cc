#include "artel/train/step/instructions.h"

#include <algorithm>
#include <span>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/exec/instructions.h"

namespace artel {

void agree_on_instructions(const std::string& wanted, Cluster& cluster) {
  if (wanted == "own") {
    settle_instructions();
    return;
  }
  const std::vector<std::string>& names = instruction_names();
  int place = best_instructions();
  if (wanted != "common") {
    const auto found = std::ranges::find(names, wanted);
    require(found != names.end(), ErrorKind::unsupported,
            "cluster.instructions: got \"{}\", but this kind of processor has {}", wanted,
            join(names, ", "));
    place = static_cast<int>(found - names.begin());
  } else if (comm::Group* const group = cluster.group(); group != nullptr) {
    auto least = static_cast<int32_t>(place);
    group->all_reduce(std::as_writable_bytes(std::span(&least, 1)), comm::ElementType::i32,
                      comm::ReductionKind::min, {.label = "instructions"});
    place = least;
    if (cluster.rank() == 0)
      log(LogLevel::info, "all workers use {} (cluster.instructions)", names[place]);
  }
  limit_instructions(place);
}

}  // namespace artel
