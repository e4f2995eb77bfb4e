#include "artel/ps/setup.h"

#include <nlohmann/json.hpp>

#include "artel/base/error.h"

namespace artel::ps {
namespace {

using Json = nlohmann::json;

}  // namespace

std::string to_text(const Setup& setup) {
  Json segments = Json::array();
  for (const Segment& segment : setup.segments)
    segments.push_back({segment.name, segment.keys.first, segment.keys.last,
                        static_cast<int>(segment.kind), segment.decays, segment.momentum});
  return Json({{"keys", {setup.keys.first, setup.keys.last}},
               {"segments", segments},
               {"rule", setup.rule},
               {"together", setup.together},
               {"lanes", setup.lanes},
               {"observations", setup.observations},
               {"delay", setup.delay ? Json(*setup.delay) : Json("none")},
               {"finished", setup.finished},
               {"compress", setup.compress}})
      .dump();
}

Setup setup_from_text(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Setup setup = {.keys = {json.at("keys").at(0), json.at("keys").at(1)},
                   .segments = {},
                   .rule = json.at("rule").get<optim::Options>(),
                   .together = json.at("together"),
                   .lanes = json.at("lanes"),
                   .observations = json.at("observations"),
                   .delay = {},
                   .finished = json.at("finished"),
                   .compress = json.at("compress")};
    if (json.at("delay").is_number()) setup.delay = json.at("delay").get<int64_t>();
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
    require(setup.keys.first <= setup.keys.last && setup.lanes >= 1, ErrorKind::corrupt,
            "[ps] setup: got keys {} to {} and {} lanes", setup.keys.first, setup.keys.last,
            setup.lanes);
    return setup;
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[ps] setup: not readable: {}", error.what());
  }
}

}  // namespace artel::ps
