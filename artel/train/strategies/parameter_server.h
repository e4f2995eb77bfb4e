// The strategy "ps": parameter servers make each update, synchronously or with a delay.
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

StrategyKind parameter_server_kind();

}  // namespace artel
