#include "artel/ps/setup.h"

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/ps/messages.h"

namespace artel::ps {
namespace {

using Json = nlohmann::json;

constexpr int kMostLanes = 1 << 20;

}  // namespace

std::string to_text(const Setup& setup) {
  Json segments = Json::array();
  for (const Segment& segment : setup.segments)
    segments.push_back({segment.name, segment.keys.first, segment.keys.last,
                        static_cast<int>(segment.kind), segment.decays, segment.momentum});
  Json workers = Json::array();
  for (const Setup::Worker& worker : setup.workers)
    workers.push_back({worker.number, worker.finished});
  return Json({{"keys", {setup.keys.first, setup.keys.last}},
               {"segments", segments},
               {"rule", setup.rule},
               {"together", setup.together},
               {"lanes", setup.lanes},
               {"observations", setup.observations},
               {"delay", setup.delay ? Json(*setup.delay) : Json("none")},
               {"finished", setup.finished},
               {"updates", setup.updates},
               {"workers", workers},
               {"compress", setup.compress}})
      .dump();
}

Setup setup_from_text(std::string_view text) {
  try {
    const Json json = parse_json(text, "ps setup");
    Setup setup = {.keys = {json.at("keys").at(0), json.at("keys").at(1)},
                   .segments = {},
                   .rule = json.at("rule").get<optim::Options>(),
                   .together = json.at("together"),
                   .lanes = json.at("lanes"),
                   .observations = json.at("observations"),
                   .delay = {},
                   .finished = json.at("finished"),
                   .updates = json.at("updates"),
                   .workers = {},
                   .compress = json.at("compress")};
    if (json.at("delay").is_number()) setup.delay = json.at("delay").get<int64_t>();
    for (const Json& item : json.at("workers")) setup.workers.push_back({item.at(0), item.at(1)});
    for (const Json& item : json.at("segments")) {
      const int kind = item.at(3);
      require(kind >= 0 && kind <= static_cast<int>(SegmentKind::sum), ErrorKind::corrupt,
              "[ps] setup: got a segment of kind {}", kind);
      setup.segments.push_back({item.at(0),
                                {item.at(1), item.at(2)},
                                static_cast<SegmentKind>(kind),
                                item.at(4),
                                item.at(5)});
    }
    require(setup.keys.first <= setup.keys.last && setup.keys.size() <= kMostKeys &&
                setup.lanes >= 1 && setup.lanes <= kMostLanes && setup.updates >= 0,
            ErrorKind::corrupt, "[ps] setup: got keys {} to {}, {} lanes and {} updates",
            setup.keys.first, setup.keys.last, setup.lanes, setup.updates);
    return setup;
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[ps] setup: not readable: {}", error.what());
  }
}

}  // namespace artel::ps
