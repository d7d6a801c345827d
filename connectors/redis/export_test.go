package redis

var FromNode = fromNode
