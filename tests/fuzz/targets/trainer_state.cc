
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/nn/parse_layers.h"
#include "artel/train/trainer.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::trainer_state {
namespace {

struct Small {
  Small() { trainer.build({DType::f32, Shape{1, 2}}); }
  Cluster cluster;
  Trainer trainer{cluster, nn::parse_layers({"dense 2"}), {.threads = 1}};
};

}  // namespace

// The state of a run in a checkpoint: what is accepted can be saved and restored again.
void read(const Bytes& bytes) {
  static Small small;
  static const artel::checkpoint::Checkpoint good = small.trainer.checkpoint();
  artel::checkpoint::Checkpoint changed = good;
  changed.state = bytes.text();
  with_name(bytes, [&] {
    small.trainer.restore(changed);
    const std::string written = small.trainer.checkpoint().state;
    changed.state = written;
    small.trainer.restore(changed);
    require(small.trainer.checkpoint().state == written, ErrorKind::internal,
            "a state changed when it was written and read:\n{}", written);
  });
}

std::vector<std::string> seeds() { return {Small().trainer.checkpoint().state}; }

}  // namespace artel::fuzz::trainer_state
