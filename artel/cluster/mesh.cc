#include "artel/cluster/mesh.h"

#include <fmt/format.h>

#include <vector>

#include "artel/base/text.h"

namespace artel {

std::string to_string(const MeshCoordinates& at) {
  std::vector<std::string> parts, stages;
  for (int64_t i = 0; at.stage >= 0 && i < at.stages; ++i)
    stages.push_back(std::to_string(at.stage + i * at.pipeline));
  if (at.data >= 0) parts.push_back(fmt::format("data {}", at.data));
  if (!stages.empty())
    parts.push_back((stages.size() > 1 ? "stages " : "stage ") + join(stages, " and "));
  if (at.tensor >= 0) parts.push_back(fmt::format("tensor {}", at.tensor));
  return join(parts, ", ");
}

}  // namespace artel
