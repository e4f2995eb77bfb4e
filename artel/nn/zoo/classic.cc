#include "artel/nn/zoo/classic.h"

#include "artel/base/error.h"
#include "artel/graph/ops.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/layers.h"

namespace artel::nn {

Layer mlp(const std::vector<int64_t>& hidden, int64_t classes) {
  std::vector<Layer> layers;
  for (const int64_t units : hidden) {
    layers.push_back(dense(units));
    layers.push_back(relu());
  }
  layers.push_back(dense(classes));
  return chain({named("flatten", flatten()), sequential(std::move(layers))});
}

Layer linear(int64_t classes) {
  require(classes == 0 || classes == 2, ErrorKind::invalid_argument,
          "[linear] classes: got {}, expected 2, or none for values; try the model \"mlp\"",
          classes);
  return {"linear", [=](Build& build, Value x) {
            const Value rows = artel::flatten(x);
            const Value weight = build.parameter("weight", {1, rows.shape()[1]}, constant(0));
            const Value margin =
                artel::dense(rows, weight, build.parameter("bias", {1}, constant(0)));
            return classes == 0 ? margin : pad(margin, 1, 1, 0);
          }};
}

Layer lenet5(int64_t classes) {
  return chain({named("conv1", conv(6, {5, 5}, {.padding = {2, 2}})), named("relu1", relu()),
                named("pool1", max_pool({2, 2})), named("conv2", conv(16, {5, 5})),
                named("relu2", relu()), named("pool2", max_pool({2, 2})),
                named("flatten", flatten()), named("fc1", dense(120)), named("relu3", relu()),
                named("fc2", dense(84)), named("relu4", relu()), named("fc3", dense(classes))});
}

}  // namespace artel::nn
