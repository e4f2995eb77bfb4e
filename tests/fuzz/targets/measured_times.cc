#include <algorithm>
#include <cmath>

#include "artel/base/file.h"
#include "artel/nn/model.h"
#include "artel/nn/parse_layers.h"
#include "artel/plan/measure.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::measured_times {
namespace {

// A graph whose times are kept in a file.
struct Kept {
  Kept() : graph(inference_graph(nn::parse_layers({"relu"}), {DType::f32, Shape{1, 2}}).graph) {
    plan::measured_node_seconds(graph, {}, folder.path());
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      file = entry.path();
  }
  TemporaryFolder folder;
  Graph graph;
  std::filesystem::path file;
};

}  // namespace

// The measured times stored by a pipeline plan: any content gives usable times.
void read(const Bytes& bytes) {
  static const Kept kept;
  write_input(kept.file, bytes.text());
  const auto seconds = plan::measured_node_seconds(kept.graph, {}, kept.folder.path());
  require(seconds.size() == kept.graph.nodes().size() &&
              std::ranges::all_of(seconds, [](double s) { return std::isfinite(s) && s >= 0; }),
          ErrorKind::internal, "times that cannot be: {}", bytes.text());
}

std::vector<std::string> seeds() { return {read_file(Kept().file), "1e-7\n", "inf\n"}; }

}  // namespace artel::fuzz::measured_times
