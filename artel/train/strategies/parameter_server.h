// The strategy "ps": parameter servers make each update, in step or with a delay.
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

StrategyKind parameter_server_kind();

}  // namespace artel
