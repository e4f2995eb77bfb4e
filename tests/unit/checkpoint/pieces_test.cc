#include "artel/checkpoint/pieces.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/checkpoint/safetensors.h"
#include "artel/checkpoint/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace artel::checkpoint {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

// Two files of two tensors and one.
class Pieces : public ::testing::Test {
 protected:
  Pieces() {
    write_safetensors(folder_ / "one.safetensors", {{"a", Tensor::from<float>({2}, {1, 2})},
                                                    {"b", Tensor::from<float>({1}, {3})}});
    write_safetensors(folder_ / "two.safetensors", {{"c", Tensor::from<float>({1}, {4})}});
    write_index(R"("a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors")");
  }

  void write_index(const std::string& map) {
    write_file_atomically(folder_ / kIndex,
                          R"({"metadata": {"total_size": 16}, "weight_map": {)" + map + "}}");
  }

  std::string error() {
    return artel::error_of([&] { load_weights(folder_ / kIndex); });
  }

  TemporaryFolder folder_;
};

TEST_F(Pieces, AreOneFile) {
  const NamedTensors tensors = load_weights(folder_ / kIndex);
  ASSERT_EQ(tensors.size(), 3u);
  std::map<std::string, float> last;
  for (const NamedTensor& each : tensors) last[each.name] = each.tensor.values<float>().back();
  EXPECT_EQ(last, (std::map<std::string, float>{{"a", 2}, {"b", 3}, {"c", 4}}));
}

TEST_F(Pieces, AreMissedByName) {
  std::filesystem::remove(folder_ / "one.safetensors");
  EXPECT_NE(error().find("'one.safetensors' is missing, the file of 2 tensors such as 'a'"),
            std::string::npos)
      << error();
}

TEST_F(Pieces, HoldWhatTheIndexSays) {
  write_index(R"("a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors",)"
              R"("d": "two.safetensors")");
  EXPECT_NE(error().find("lacks the tensor 'd', which the index lists in it"), std::string::npos);
  write_index(R"("a": "one.safetensors", "c": "two.safetensors")");
  EXPECT_NE(error().find("tensor 'b' is not in the index"), std::string::npos);
}

TEST_F(Pieces, HoldATensorOnce) {
  write_safetensors(folder_ / "two.safetensors",
                    {{"a", Tensor::from<float>({1}, {9})}, {"c", Tensor::from<float>({1}, {4})}});
  EXPECT_NE(error().find("has the tensor 'a', but the index lists it in 'one.safetensors'"),
            std::string::npos);
  write_index(R"("a": "one.safetensors", "a": "two.safetensors")");
  EXPECT_NE(error().find("has 'a' twice"), std::string::npos);
}

TEST_F(Pieces, StayInTheirFolder) {
  for (const char* name :
       {"../one.safetensors", "/etc/passwd", "..", ".", "", "sub/one.safetensors",
        "sub\\\\one.safetensors", "one\\u0000.safetensors"}) {
    write_index(R"("a": ")" + std::string(name) + "\"");
    EXPECT_NE(error().find("expected the name of a file in the same folder"), std::string::npos)
        << name << ": " << error();
  }
  write_index(R"("a": 7)");
  EXPECT_NE(error().find("expected the name of a file in the same folder"), std::string::npos);
}

TEST_F(Pieces, AreNoIndexThemselves) {
  write_index(R"("a": ")" + std::string(kIndex) + "\"");
  EXPECT_NE(error().find("not a weight file"), std::string::npos) << error();
}

TEST_F(Pieces, NeedAnIndexThatIsOne) {
  write_file_atomically(folder_ / kIndex, "{}");
  EXPECT_NE(error().find("is not an index of weights"), std::string::npos);
  write_file_atomically(folder_ / kIndex, "{\"weight_map\": ");
  EXPECT_NE(error(), "");
}

}  // namespace
}  // namespace artel::checkpoint
