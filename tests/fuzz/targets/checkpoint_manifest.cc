#include "artel/checkpoint/checkpoint.h"

#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::checkpoint_manifest {
namespace {

namespace saved = artel::checkpoint;

// A folder of checkpoints with one in it.
class Folder {
 public:
  Folder() {
    const saved::Checkpoint one = {.step = 7,
                                   .weights = {{"w", Tensor::from<float>({2}, {1, 2})}},
                                   .optimizer = {},
                                   .state = R"({"lanes": 4, "loader": {"epoch": 1}})"};
    manifest_ = save_checkpoint(folder_ / "fuzz", one) / "checkpoint.json";
  }
  const std::filesystem::path& manifest() const { return manifest_; }

 private:
  TemporaryFolder folder_;
  std::filesystem::path manifest_;
};

}  // namespace

// The manifest of a checkpoint whose other files are in order.
void read(const Bytes& bytes) {
  static const Folder folder;
  write_input(folder.manifest(), bytes.text());
  with_name(bytes, [&] { saved::load_checkpoint(folder.manifest().parent_path()); });
  saved::list_checkpoints(folder.manifest().parent_path().parent_path());
}

std::vector<std::string> seeds() {
  const std::string text = read_file(Folder().manifest());
  nlohmann::json older = nlohmann::json::parse(text);  // without a checksum, which nobody guesses
  older.erase("crc32");
  return {text, older.dump()};
}

}  // namespace artel::fuzz::checkpoint_manifest
