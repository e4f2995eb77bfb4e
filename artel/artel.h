// All that a program needs to train networks with Artel; examples/quickstart.cc is a tour.
#pragma once

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/version.h"
#include "artel/checkpoint/weights.h"
#include "artel/cluster/cluster.h"
#include "artel/data/images/augment.h"
#include "artel/data/sets.h"
#include "artel/data/text/text.h"
#include "artel/exec/kernel.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/layers.h"
#include "artel/nn/loss.h"
#include "artel/nn/metric.h"
#include "artel/nn/model.h"
#include "artel/nn/named_values.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/recurrent.h"
#include "artel/nn/transformer.h"
#include "artel/nn/zoo/bert.h"
#include "artel/nn/zoo/gpt2.h"
#include "artel/nn/zoo/registry.h"
#include "artel/nn/zoo/vit.h"
#include "artel/optim/config.h"
#include "artel/optim/schedule.h"
#include "artel/predict/generate.h"
#include "artel/predict/predictor.h"
#include "artel/run/run.h"
#include "artel/train/parts/distributed_product.h"
#include "artel/train/strategies/options.h"
#include "artel/train/trainer.h"

namespace artel {
// Checks before main that the headers and the library have the same version.
inline const bool kHeadersFit = (check_headers(kHeaderVersion), true);
}  // namespace artel
