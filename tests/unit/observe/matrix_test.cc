#include "artel/observe/matrix.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"

namespace artel::observe {
namespace {

const Matrix kPets = {.title = "confusion matrix",
                      .row_label = "label",
                      .column_label = "answer",
                      .names = {"cat", "<dog>"},
                      .counts = {40, 2, 5, 53}};

TEST(Matrix, AsText) {
  EXPECT_EQ(matrix_text(kPets),
            "label \\ answer  cat  <dog>\n"
            "--------------  ---  -----\n"
            "cat              40      2\n"
            "<dog>             5     53\n");
}

TEST(Matrix, AsAPicture) {
  const std::string svg = matrix_svg(kPets);
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find(">&lt;dog&gt;</text>"), std::string::npos);
  EXPECT_NE(svg.find(">53</text>"), std::string::npos);
  EXPECT_NE(svg.find("fill-opacity=\"0.952\""), std::string::npos);  // 40 of 42
  // With many classes there is no room for numbers.
  Matrix large = {.names = std::vector<std::string>(50, "x"), .counts = std::vector<double>(2500)};
  EXPECT_EQ(matrix_svg(large).find(">0</text>"), std::string::npos);
  large.counts.pop_back();
  EXPECT_THROW(matrix_svg(large), Error);
}

}  // namespace
}  // namespace artel::observe
