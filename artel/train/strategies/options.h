// The options of all built-in strategies, for TrainerOptions::strategy_options.
//
//   artel::TrainerOptions options = {.strategy = "ring"};
//   options.strategy_options = {artel::LocalStepsOptions{.local_steps = 8, .outer_momentum = 0.9}};
//   options.strategy_options.of<artel::PackingOptions>().compress = "int8";
#pragma once

#include "artel/train/strategies/delayed_proximal.h"
#include "artel/train/strategies/downpour.h"
#include "artel/train/strategies/local_steps.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategies/synchronous.h"
#include "artel/train/strategies/tensor.h"
