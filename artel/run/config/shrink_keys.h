// The configuration keys for distillation and pruning. Internal to run/config.
#pragma once

#include "artel/base/keys.h"
#include "artel/run/config/config.h"

namespace artel {

// See visit_keys (config_keys.h).
void visit_shrink_keys(RunConfig& config, auto& field) {
  auto& distil = config.distil;
  field(
      {"distil.teachers",
       "Teachers for knowledge distillation: folders of runs, checkpoints, or configurations with "
       "`model.weights`. The outputs of several teachers are averaged. Set by `artel distil`."},
      distil.teachers);
  field({.name = "distil.temperature",
         .help = "Divisor of the scores of teachers and student before the softmax. Higher values "
                 "give the less likely classes more weight. Only for losses of classes.",
         .least = 0.01},
        distil.temperature);
  field({.name = "distil.weight",
         .help = "Weight of the teachers in the loss. The targets have the remaining weight.",
         .most = 1},
        distil.weight);
  field({"distil.cache",
         "Compute the teachers' outputs once for all epochs and cache them in a file (below "
         "`$ARTEL_DATA/features`). Applies only if samples are the same in each epoch and are not "
         "texts; otherwise outputs are computed for each batch."},
        distil.cache);
  field({"model.units",
         "Layers with fewer units or channels than the model's default, such as "
         "`[\"layer1.0.conv1 8\"]`. Set by `artel prune --channels`."},
        config.model.units);
  auto& prune = config.prune;
  field({"prune.keep_zeros",
         "Keep weights of dense layers and convolutions zero that are zero at the start. Set by "
         "`artel prune --weights`."},
        prune.keep_zeros);
  field({.name = "prune.weights",
         .help = "Share of the weights of dense layers and convolutions to set to zero gradually "
                 "during training, smallest first. Not with sharding, pipelines, tensor groups, or "
                 "local steps. 0: none.",
         .most = 0.999},
        prune.weights);
  field({.name = "prune.scope",
         .help = "Rank the weights of all layers together (`global`), or of each layer (`layer`).",
         .choices = {"global", "layer"}},
        prune.scope);
  field({"prune.begin", "Step after which the first weights are set to zero."}, prune.begin);
  field({"prune.end", "Step after which the last weights are set to zero. 0: half of all steps."},
        prune.end);
  field({.name = "prune.every", .help = "Steps between two prunings.", .least = 1}, prune.every);
}

}  // namespace artel
